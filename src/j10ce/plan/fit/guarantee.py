"""memory.min and memory.low hold only where every ancestor has as much: parents cover the sum of their children.

First groups of ours are raised to what is promised inside them, then whatever does not fit is scaled down from the
top, and last the ancestors that are not ours are raised, never lowered below what they had before us. Floors are cut
last: first goes what is protected beyond them, such as the agent's own memory.

A memory.max below the sum cuts nothing inside: children cannot use more together than it lets them, and once it is hit
the kernel goes by the children's own values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from j10ce.model.knob import Setting, TargetId, render
from j10ce.model.resource import spell
from j10ce.plan.board import Board
from j10ce.plan.merge import number
from j10ce.policy.effect.foreign_claims import claimed_by_others

SPARED_SHARE = 0.05  # of the machine's memory is never promised, and at least this much
SPARED_BYTES = 512 * 2**20


def fit_guarantees(board: Board) -> None:
    for knob in ("memory.min", "memory.low"):
        if knob in board.knobs:
            _Cover(board, knob).fit()


def most_promised(memory: int) -> float:
    """What the sum of memory.min may reach on a machine with that much memory."""
    return float(max(0, memory - max(memory * SPARED_SHARE, SPARED_BYTES)))


class _Cover:
    def __init__(self, board: Board, knob: str) -> None:
        self.board = board
        self.knob = knob
        self.value = board.column(knob)
        self.cap = board.column("memory.max")

    def fit(self) -> None:
        rights = self.board.rights
        for target in reversed(rights.top_down):
            if target in rights.ours:
                self._raise(target, self._inside(target))
                self._keep_below_cap(target)
        if self.knob == "memory.min":
            self._fit_machine()
        for target in rights.top_down:
            if target in rights.ours and target in self.board.snap.groups.children:
                self._shrink(self.board.children(target), self.value[target] - self._foreign(target), str(target))
        self._raise_foreign()

    def _raise_foreign(self) -> None:
        """From the bottom up, the groups that are not ours and have something promised by us inside, or a wish.

        What strangers keep inside is covered for the sake of those whom we promised something, and of nobody else.
        """
        rights, up = self.board.rights, self.board.snap.groups.ancestors
        above = {a for t in rights.tops if self.value[t] for a in up(t)}
        wished = {s.target for s in self.board.verdicts if s.knob == self.knob and s.target not in rights.ours}
        for target in reversed(rights.top_down):
            if target in above or target in wished:
                self._raise_ancestor(target, self._inside(target) if target in above else 0.0)

    def _inside(self, target: TargetId) -> float:
        below = self.board.children(target)
        return math.fsum(self.value[c] for c in below) + self._foreign(target) if below else 0.0

    def _foreign(self, target: TargetId) -> float:
        """What neighbours inside the group claim; an absurd claim counts as the whole machine."""
        field = "memory_min" if self.knob == "memory.min" else "memory_low"
        most = float(self.board.snap.node.memory)
        return math.fsum(min(getattr(f, field), most) for f in self.board.snap.groups[target].foreign)

    def _raise(self, target: TargetId, need: float) -> None:
        if need > self.value[target] and self.board.movable(target, self.knob):
            self._move(target, need, f"raised to {render(self.knob, need)}: the sum of what is promised inside")

    def _keep_below_cap(self, target: TargetId) -> None:
        cap = self.cap[target]
        leaf = not self.board.children(target)
        if leaf and self.value[target] > cap and self.board.movable(target, self.knob):
            self._move(target, cap, f"lowered to {render(self.knob, cap)}: a guarantee never exceeds memory.max")

    def _fit_machine(self) -> None:
        node = self.board.snap.node
        theirs = claimed_by_others(self.board.snap, self.board.originals)
        room = max(0.0, most_promised(node.memory) - theirs)
        wanted = math.fsum(self.value[t] for t in self.board.rights.tops)
        if self._shrink(self.board.rights.tops, room, "the machine"):
            sizes = [spell("memory", n) for n in (wanted, room, node.memory)]
            beside = f"; others keep {spell('memory', theirs)}" if theirs else ""
            self.board.notes.append("memory.min cut: {} promised, {} of {} may be".format(*sizes) + beside)

    def _shrink(self, targets: tuple[TargetId, ...] | list[TargetId], room: float, where: str) -> bool:
        """Scale alike until the sum fits, floors last; what is held or not ours keeps its size."""
        total = math.fsum(self.value[t] for t in targets)
        if total <= max(room, 0.0):
            return False
        movable = [t for t in targets if self.value[t] and self.board.movable(t, self.knob)]
        left = max(0.0, room - (total - math.fsum(self.value[t] for t in movable)))
        floors = {t: min(self.value[t], self._floor(t)) for t in movable}
        beyond = {t: self.value[t] - floors[t] for t in movable}
        kept = _factor(left, floors)
        extra = _factor(left - math.fsum(floors.values()), beyond)
        page = self.board.snap.node.page
        for target in movable:
            share = (floors[target] * kept + beyond[target] * extra) // page * page
            if share != self.value[target]:
                room_for = f"{where} has room for {share / self.value[target]:.0%}"
                self._move(target, share, f"cut to {render(self.knob, share)}: {room_for}")
        return bool(movable)

    def _floor(self, target: TargetId) -> float:
        """What was promised to those inside, in whole pages."""
        floor, page = self.board.rights.floors.get(target), self.board.snap.node.page
        return float(-(-floor.memory // page) * page) if floor else 0.0

    def _raise_ancestor(self, target: TargetId, inside: float) -> None:
        s = Setting(target, self.knob)
        verdict = self.board.verdicts.get(s)
        need = max(inside, self.value[target] if verdict else 0.0)
        if verdict.held if verdict else not need:
            return
        present = self.board.snap.settings.get(s)
        if present is None:
            self._skip_unread(s)
            return
        least = max(need, number(self.board.originals.get(s, present)))
        if self.value[target] != least:
            self._move(target, least, f"set to {render(self.knob, least)}: not ours, so only raised, for those inside")

    def _skip_unread(self, s: Setting) -> None:
        """Not knowing what an ancestor has, we might lower it."""
        self.board.notes.append(f"{s} left alone: its present value is not known")
        if s in self.board.verdicts:
            self.board.leave(s, "left alone: not ours, and its present value is not known")

    def _move(self, target: TargetId, value: float, why: str) -> None:
        self.value[target] = value
        self.board.move(target, self.knob, value, why)


def _factor(room: float, sizes: Mapping[TargetId, float]) -> float:
    """The share of each that fits."""
    total = math.fsum(sizes.values())
    return min(1.0, max(0.0, room) / total) if total else 0.0
