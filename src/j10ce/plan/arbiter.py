"""Nobody sets a knob; everybody proposes. The arbiter merges, clamps, fits, drops what is there, and orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import NamedTuple

from j10ce.model.knob import KNOBS, MADE_KINDS, Setting, Support, TargetId, Value, kind_of
from j10ce.model.plan import Bound, HeldSetting, Plan, Proposal, Rank, Remove, Verdict
from j10ce.model.resource import NOTHING
from j10ce.model.snapshot import Groups, NodeFacts, Piece, Snapshot
from j10ce.plan.advice import Heard, heed
from j10ce.plan.board import Board
from j10ce.plan.difference import Difference, Quantise
from j10ce.plan.fit.cpuset import fit_placements
from j10ce.plan.fit.guarantee import fit_guarantees
from j10ce.plan.fit.quota import fit_quotas
from j10ce.plan.hold import InForce, held, in_force
from j10ce.plan.merge import LAPSED, merge
from j10ce.plan.order import order
from j10ce.plan.rights import Rights
from j10ce.plan.structure import structure
from j10ce.plan.wishes import Batch, Wishes
from j10ce.policy.lifetime import over

UNADVISED = "advice counts on what is ours alone"


def arbitrate(
    proposals: Iterable[Proposal],
    snap: Snapshot,
    holds: Iterable[HeldSetting],
    quantise: Quantise,
    *,
    originals: Mapping[Setting, Value] | None = None,
) -> Plan:
    """One plan from all wishes. Pure, and the order of the proposals does not matter.

    `originals`: what the settings we own held before us; one that nobody proposes any more, or that is not ours to set
    any more, goes back to it.
    """
    return Arbiter(quantise).arbitrate((tuple(proposals),), snap, holds, originals=originals)


class Inputs(NamedTuple):
    """What a plan depends on besides the wishes. Mappings are copies: callers may change theirs in place."""

    epoch: int = -1
    holds: tuple[HeldSetting, ...] = ()  # unexpired
    originals: Mapping[Setting, Value] = {}
    settings: Mapping[Setting, Value] = {}
    support: Mapping[str, Support] = {}
    node: NodeFacts | None = None
    pieces: Mapping[TargetId, Piece] = {}


class Arbiter:
    """`arbitrate`, with a memory: what did not change since the last call is not decided again."""

    def __init__(self, quantise: Quantise) -> None:
        self.quantise = quantise
        self.proposed: tuple[Batch, ...] = ()
        self.heard = Heard(())
        self.wishes = Wishes()
        self.inputs = Inputs()
        self.rights = Rights()
        self.in_force = InForce({}, ())
        self.merged: dict[Setting, Verdict] = {}
        self.dropped: dict[Setting, str] = {}
        self.waits_on: Groups | None = None  # a cap waits for usage in this tree to fall
        self.plan = Plan()

    def arbitrate(
        self,
        batches: Iterable[Iterable[Proposal]],
        snap: Snapshot,
        holds: Iterable[HeldSetting] = (),
        *,
        originals: Mapping[Setting, Value] | None = None,
    ) -> Plan:
        """One batch per controller, in a steady order; a tuple that is the same object as last time costs nothing.

        The same inputs return the same plan object. Tree, workloads and entitlements are compared by `snap.epoch`.
        """
        proposed = tuple(map(tuple, batches))
        before, self.inputs = self.inputs, _inputs(snap, holds, originals or {})
        settled = self.waits_on is None or self.waits_on is snap.groups
        if before == self.inputs and settled and proposed == self.proposed:
            return self.plan
        self.proposed = proposed
        board = self._board(before, proposed, snap)
        self.heard = heed(proposed, board.verdicts, snap, lambda batches: self._instead(batches, snap))
        if self.heard.batches is not proposed:
            board = self._board(self.inputs, self.heard.batches, snap)
        self.plan = self._plan(board, snap)
        return self.plan

    def _instead(self, batches: tuple[Batch, ...], snap: Snapshot) -> Mapping[Setting, Verdict]:
        """The verdicts on other batches, without a trace here: only what differs from these is decided."""
        other = copy(self)
        other.wishes, other.merged, other.dropped = copy(self.wishes), dict(self.merged), dict(self.dropped)
        return other._board(self.inputs, batches, snap).verdicts

    def _touched(self, before: Inputs, proposed: tuple[Batch, ...], snap: Snapshot) -> set[Setting]:
        """The settings whose verdict may be another than last time."""
        after, rights, in_force_before = self.inputs, self.rights, self.in_force
        touched = self.wishes.update(proposed)
        if before.epoch != after.epoch:
            self.rights = Rights.of(snap)
        self.in_force = in_force(after.holds, snap, self.rights)
        known = {*chain(self.wishes.settings(), self.in_force.holds, after.originals, self.merged, self.dropped)}
        if (before.node, before.support) != (after.node, after.support):
            return known
        touched |= _changed(before.originals, after.originals) | _changed(before.settings, after.settings)
        touched |= _changed(in_force_before.holds, self.in_force.holds)
        if before.pieces != after.pieces:
            touched |= {s for s in known if s.target in {*before.pieces, *after.pieces}}
        if moved := rights.differing(self.rights):
            touched |= {s for s in known if s.target in moved}
        return touched

    def _decide(self, s: Setting, snap: Snapshot) -> None:
        self.merged.pop(s, None)
        self.dropped.pop(s, None)
        wishes, hold, owed = self._wishes(s, snap), self.in_force.holds.get(s), s in self.inputs.originals
        if not wishes and hold is None and not owed:
            return
        objection = self.rights.objection(s, snap)
        if objection:
            if wishes or (hold and not owed):
                self.dropped[s] = objection
            if not owed or not self.rights.may_end(s, snap):
                return
            wishes = ()
        if hold is not None:
            self.merged[s] = held(hold, wishes, snap.settings.get(s))
        else:
            if not wishes:
                original, why = self.inputs.originals[s], objection or "nobody asks for it any more"
                wishes = [Proposal(s, Bound.WANT, original, LAPSED, Rank.ADVICE, why)]
            floor = self.rights.floors.get(s.target, NOTHING)
            self.merged[s] = merge(s, wishes, self._base(s, snap), floor, snap.node)

    def _wishes(self, s: Setting, snap: Snapshot) -> Sequence[Proposal]:
        """Advice counts on what is ours alone: what an ancestor keeps is bounded by nothing but the floors inside."""
        wishes = self.wishes.of(s)
        ours = s.target in self.rights.ours or kind_of(s.target) in MADE_KINDS
        if ours or all(p.rank is not Rank.ADVICE for p in wishes):
            return wishes
        if not self.rights.objection(s, snap):
            self.dropped[s] = UNADVISED
        return [p for p in wishes if p.rank is not Rank.ADVICE]

    def _base(self, s: Setting, snap: Snapshot) -> Value:
        """What bounds move where nobody wants a value: a fresh cgroup's value, or what an adopted one came with."""
        default = KNOBS[s.knob].default if s.knob in KNOBS else 0.0
        if s.target in self.rights.owned or kind_of(s.target) in MADE_KINDS:
            return default
        idle = s.knob == "cpu.weight" and snap.settings.get(Setting(s.target, "cpu.idle")) == 1.0
        present = default if idle else snap.settings.get(s, default)  # an idle group shows a weight that nobody set
        return self.inputs.originals.get(s, present)

    def _board(self, before: Inputs, batches: tuple[Batch, ...], snap: Snapshot) -> Board:
        """What these batches come to, every rule that spans settings applied."""
        for s in self._touched(before, batches, snap):
            self._decide(s, snap)
        unused = self._unused(snap)
        decided = {s: v for s, v in self.merged.items() if s.target not in unused} if unused else dict(self.merged)
        board = Board(snap, self.rights, decided, self.inputs.originals)
        # What is held and not ours any more stays as it is; it goes back when the hold ends.
        held_still = (s for s, h in self.in_force.holds.items() if h.value is None or self.rights.objection(s, snap))
        board.still.update(held_still)
        fit_quotas(board)
        fit_placements(board)
        fit_guarantees(board)
        return board

    def _plan(self, board: Board, snap: Snapshot) -> Plan:
        difference = Difference(board, self.quantise)
        self.waits_on = snap.groups if difference.restless else None
        removes = [Remove(target, "nobody wants anything there") for target in sorted(self._unused(snap))]
        steps = [*structure(snap, difference.changes, self.rights), *removes]
        ordered = order(difference.changes, steps, snap)
        return Plan(
            ordered, board.verdicts, (*self.in_force.notes, *self.heard.notes, *board.notes, *self._dropped_notes())
        )

    def _unused(self, snap: Snapshot) -> frozenset[TargetId]:
        """Targets beside cgroups that we made, and for which nobody has a wish or a hold any more."""
        ours = frozenset(t for t, piece in snap.pieces.items() if piece.owned)
        if not ours:
            return ours
        return ours.difference(s.target for s in chain(self.wishes.settings(), self.in_force.holds))

    def _dropped_notes(self) -> Iterable[str]:
        """One line per knob and reason, not per setting."""
        dropped = [*self.dropped.items()]
        dropped += [(p.setting, f"{p.owner} proposed no valid value") for p in self.wishes.malformed()]
        one_of = {(s.knob, why): s for s, why in dropped}
        for (knob, why), count in sorted(Counter((s.knob, why) for s, why in dropped).items()):
            where = f"{knob} of {count} targets" if count > 1 else str(one_of[knob, why])
            yield f"{where} not set: {why}"


def _inputs(snap: Snapshot, holds: Iterable[HeldSetting], originals: Mapping[Setting, Value]) -> Inputs:
    unexpired = tuple(sorted((h for h in holds if not over(h, snap.wall)), key=repr))
    copies = dict(originals), dict(snap.settings), dict(snap.support)
    return Inputs(snap.epoch, unexpired, *copies, snap.node, dict(snap.pieces))


def _changed(a: Mapping[Setting, object], b: Mapping[Setting, object]) -> set[Setting]:
    if a == b:
        return set()
    return {s for s, value in b.items() if a.get(s) != value} | (a.keys() - b.keys())
