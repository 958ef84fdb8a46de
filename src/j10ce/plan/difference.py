"""What the kernel does not hold yet, after its own rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from j10ce.model.knob import Setting, TargetId, Value, render
from j10ce.model.plan import ValueChange, Verdict
from j10ce.model.resource import spell
from j10ce.plan.board import Board
from j10ce.plan.merge import number

Quantise: TypeAlias = Callable[[Setting, Value], Value]
MEMORY_CAPS: Final = frozenset({"memory.high", "memory.max"})
SPARE_SHARE: Final = 0.05  # room that a cap leaves above what is in use, and at least this much
SPARE_BYTES: Final = 2**20


class Difference:
    """`restless`: a cap waits for usage to fall, so the next instant may differ with the same wishes."""

    def __init__(self, board: Board, quantise: Quantise) -> None:
        self.board = board
        self.quantise = quantise
        self.restless = False
        self.changes = list(self._changes())
        self.changes.extend(self._weights_after_idle())
        if board.on_v1("cpuset.cpus"):
            self.changes.extend(self._sets_dragged_along())

    def _changes(self) -> Iterator[ValueChange]:
        present, still = self.board.snap.settings, self.board.still
        for s, verdict in list(self.board.verdicts.items()):
            old, leaves = present.get(s), self._leaves(s)
            if (verdict.value == old and not leaves) or s in still:
                continue
            new = self.quantise(s, verdict.value)
            if new != old and s.knob in MEMORY_CAPS:
                verdict, new = self._spare_usage(verdict, new, old)
            if self._leaves(s) or (new != old and self._reachable(s.target)):
                yield ValueChange(s, old, new, *credit(verdict), self.board.ends(s))

    def _leaves(self, s: Setting) -> bool:
        """What is not ours any more is a change even where its value is as it was: the kernel then forgets it."""
        return s.target not in self.board.rights.ours and self.board.ends(s)

    def _reachable(self, target: TargetId) -> bool:
        """There, or about to be made; a cgroup that vanished, adopted or of a workload nobody chose, is neither."""
        group = self.board.snap.groups.get(target)
        if group is None:  # a target beside cgroups, which the rights let through
            return True
        return group.exists or (group.owned and target in self.board.rights.ours)

    def _spare_usage(self, verdict: Verdict, new: Value, old: Value | None) -> tuple[Verdict, Value]:
        """A cap below present usage would kill or stall at once: come down only as usage does."""
        s = verdict.setting
        used = self.board.snap.groups[s.target].memory_current
        page = self.board.snap.node.page
        least = math.ceil((used + max(used * SPARE_SHARE, SPARE_BYTES)) / page) * page if used else 0
        spared = min(least, number(old) if old is not None else math.inf)
        if number(new) >= spared:
            return verdict, new
        self.restless = True
        why = f"kept at {render(s.knob, spared)}: {spell('memory', used)} are in use, and less would stall or kill"
        self.board.move(s.target, s.knob, float(spared), why)
        return self.board.verdicts[s], self.quantise(s, float(spared))

    def _weights_after_idle(self) -> Iterator[ValueChange]:
        """Clearing cpu.idle resets the weight, whatever was read back before."""
        changed = {c.setting for c in self.changes}
        for change in list(self.changes):
            weight = Setting(change.setting.target, "cpu.weight")
            verdict = self.board.verdicts.get(weight)
            if change.setting.knob != "cpu.idle" or change.new or verdict is None:
                continue
            if weight not in changed and weight not in self.board.still:
                old = self.board.snap.settings.get(weight)
                new = self.quantise(weight, verdict.value)
                yield ValueChange(weight, old, new, *credit(verdict), self.board.ends(weight))

    def _sets_dragged_along(self) -> Iterator[ValueChange]:
        """The v1 back end moves a child whose set equals its parent's along with it; one with a wish stays its own."""
        present, groups = self.board.snap.settings, self.board.snap.groups
        changed = {c.setting for c in self.changes}
        moved = {c.setting.target for c in self.changes if c.setting.knob == "cpuset.cpus"}
        for target in self.board.rights.top_down:
            s, up = Setting(target, "cpuset.cpus"), groups.parent(target)
            if up is None or up not in moved or s not in present or present[s] != present.get(s._replace(target=up)):
                continue
            moved.add(target)
            if s in self.board.verdicts and s not in changed and s not in self.board.still:
                verdict = self.board.verdicts[s]
                yield ValueChange(s, present[s], verdict.value, *credit(verdict))


def credit(verdict: Verdict) -> tuple[str, str]:
    """(owner, why) of the value."""
    if verdict.by is not None:
        return verdict.by.owner, verdict.by.reason
    owner = verdict.winner.owner if verdict.winner else "arbiter"
    return owner, verdict.clamps[-1] if verdict.clamps else "follows from its bounds"
