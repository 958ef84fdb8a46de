"""Advice is heard as far as every floor stays as good as it would be without it.

Whether it does is not a matter of one setting: a neighbour's weight, an ancestor's cap or a CPU set that others share
can cost a floor as much as its own weight. So the plan with the advice is judged against the plan without it, and what
an owner advises on CPU, or on memory, is left out as a whole where a floor would suffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from j10ce.model.knob import KNOBS, Setting, TargetId, Value
from j10ce.model.plan import Plan, Proposal, Rank, Verdict
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.plan.merge import LAPSED
from j10ce.plan.wishes import Batch
from j10ce.policy.effect.cpu_share import cpu_times
from j10ce.policy.effect.effective import effective

Verdicts = Mapping[Setting, Verdict]
Decide = Callable[[tuple[Batch, ...]], Verdicts]


class Heard(NamedTuple):
    batches: tuple[Batch, ...]
    notes: tuple[str, ...] = ()  # what was left out, and for whose sake


class Topic(NamedTuple):
    owner: str
    resource: str  # cpu, memory

    @classmethod
    def of(cls, p: Proposal) -> Topic:
        controller = KNOBS[p.setting.knob].controller if p.setting.knob in KNOBS else ""
        return cls(p.owner, "memory" if controller == "memory" else "cpu")


class FloorKept(NamedTuple):
    """What a workload has of its floor."""

    cpu: float  # millicores
    memory: float  # bytes


def heed(batches: tuple[Batch, ...], verdicts: Verdicts, snap: Snapshot, decide: Decide) -> Heard:
    """`verdicts`: those of these batches. `decide`: the verdicts of others, whatever was decided before."""
    topics = sorted({Topic.of(p) for batch in batches for p in batch if p.rank is Rank.ADVICE and not _moot(p, snap)})
    floored = {t for t, e in snap.entitlements.items() if e.chosen and (e.floor.cpu or e.floor.memory)}
    if not topics or not floored & snap.groups.by_target.keys():
        return Heard(batches)
    bare, whole = _in_force(snap, decide(_with(batches, (), snap))), _in_force(snap, verdicts)
    if bare == whole:
        return Heard(batches)  # it comes to the same, and what it is worth need not be judged
    without = _kept(snap, bare, floored)
    if not _harmed(snap, without, _kept(snap, whole, floored)):
        return Heard(batches)
    heard: list[Topic] = []
    notes = []
    for topic in topics:
        tried = _in_force(snap, decide(_with(batches, (*heard, topic), snap)))
        if harm := _harmed(snap, without, _kept(snap, tried, floored)):
            notes.append(f"advice of {topic.owner} on {topic.resource} left out: {harm}")
        else:
            heard.append(topic)
    return Heard(_with(batches, heard, snap), tuple(notes))


def advised(plan: Plan, knob: str) -> frozenset[TargetId]:
    """The targets for which somebody advises the knob: whatever it holds there beyond floors gives way to the next."""
    return frozenset(s.target for s, v in plan.verdicts.items() if s.knob == knob and any(map(_is_advice, _asked(v))))


def _asked(verdict: Verdict) -> Iterator[Proposal]:
    yield from (p for p in (verdict.winner, verdict.by, *verdict.others) if p is not None)


def _is_advice(p: Proposal) -> bool:
    return p.rank is Rank.ADVICE and p.owner != LAPSED


def _moot(p: Proposal, snap: Snapshot) -> bool:
    """To follow the group above is what a group of ours does where nobody asks for anything else."""
    if p.setting.knob != "cpuset.cpus" or p.value != frozenset():
        return False
    group = snap.groups.get(p.setting.target)
    return group is not None and group.owned


def _with(batches: tuple[Batch, ...], topics: Iterable[Topic], snap: Snapshot) -> tuple[Batch, ...]:
    """The batches without other advice than on these topics; a batch without any stays the same object."""
    kept = frozenset(topics)

    def passes(p: Proposal) -> bool:
        return p.rank is not Rank.ADVICE or _moot(p, snap) or Topic.of(p) in kept

    return tuple(b if all(map(passes, b)) else tuple(filter(passes, b)) for b in batches)


def _kept(
    snap: Snapshot, settings: Mapping[Setting, Value], floored: Iterable[TargetId]
) -> Mapping[TargetId, FloorKept]:
    """What the floors are worth once these are the settings."""
    after = replace(snap, settings=settings)
    judged, times = effective(after), cpu_times(after)
    kept = {}
    for target in floored:
        if target in judged:
            parts = after.groups.children.get(target, ())
            time = math.fsum(times[p].total for p in parts) if parts else times[target].total
            memory = min(judged[target].memory, math.fsum(_cap(after, p) for p in parts) if parts else math.inf)
            kept[target] = FloorKept(time, memory)
    return kept


def _in_force(snap: Snapshot, verdicts: Verdicts) -> Mapping[Setting, Value]:
    """Every setting once they are applied; a group that is woken up has a fresh one's weight unless it gets one."""
    decided = {s: v.value for s, v in verdicts.items()}
    woken = (s for s, v in decided.items() if s.knob == "cpu.idle" and not v and snap.settings.get(s) == 1.0)
    fresh = {Setting(s.target, "cpu.weight"): KNOBS["cpu.weight"].default for s in woken}
    return {**snap.settings, **fresh, **decided}


def _cap(snap: Snapshot, part: TargetId) -> float:
    caps = (snap.settings.get(Setting(part, knob)) for knob in ("memory.max", "memory.high"))
    return min((float(v) for v in caps if isinstance(v, float | int)), default=math.inf)


def _harmed(snap: Snapshot, before: Mapping[TargetId, FloorKept], after: Mapping[TargetId, FloorKept]) -> str:
    """The first floor that is worse off, with the numbers; empty: none is. A millicore and a page are rounding."""
    for target in sorted(before):
        floor, had, has = snap.entitlements[target].floor, before[target], after[target]
        for kind, promised, a, b, slack in (
            ("cpu", floor.cpu, had.cpu, has.cpu, 1.0),
            ("memory", floor.memory, had.memory, has.memory, float(snap.node.page)),
        ):
            if b < min(promised, a) - slack:
                return f"{target} would have {spell(kind, int(b))} of its floor of {kind} {spell(kind, promised)}"
    return ""
