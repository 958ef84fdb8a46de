"""An operator's freeze: which ones are in force, and which would cut a floor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from j10ce.model.knob import KNOBS, Setting, Value, render
from j10ce.model.plan import Bound, HeldSetting, Proposal, Rank, Verdict
from j10ce.model.resource import NOTHING, Resources, spell
from j10ce.model.snapshot import Snapshot
from j10ce.plan.merge import FLOORED, FREEZE, cpus, least_cap, precedence, promised
from j10ce.plan.rights import Rights
from j10ce.policy.effect.cpu_share import cpu_times
from j10ce.policy.lifetime import over


class InForce(NamedTuple):
    holds: dict[Setting, HeldSetting]
    notes: tuple[str, ...]  # holds refused, and floors that a hold breaks


def in_force(holds: Iterable[HeldSetting], snap: Snapshot, rights: Rights) -> InForce:
    """The unexpired holds that are not refused; of two for one setting the later expiry counts."""
    holding: dict[Setting, HeldSetting] = {}
    notes: list[str] = []
    for hold in sorted(holds, key=lambda h: (h.expires, h.who, h.why)):
        if over(hold, snap.wall):
            continue
        problem = _problem(hold, snap, rights)
        if problem and not hold.breaks_reservation:
            notes.append(f"hold by {hold.who} on {hold.setting} refused: {problem}")
            continue
        if problem:
            notes.append(f"hold by {hold.who} on {hold.setting} breaks a reservation: {problem}")
        holding[hold.setting] = hold
    return InForce(holding, tuple(notes))


def held(hold: HeldSetting, wishes: Sequence[Proposal], present: Value | None) -> Verdict:
    """A held setting keeps its value whatever others wish; bounds of others do not move it."""
    s = hold.setting
    text = f"by {hold.who}: {hold.why}"
    others = tuple(sorted(wishes, key=precedence))
    if hold.value is None:
        left = present if present is not None else KNOBS[s.knob].default if s.knob in KNOBS else ""
        return Verdict(s, left, None, others, held=text)
    wish = Proposal(s, Bound.WANT, hold.value, f"hold by {hold.who}", Rank.HOLD, hold.why)
    return Verdict(s, hold.value, wish, others, held=text, by=wish)


def hold_problem(hold: HeldSetting, snap: Snapshot) -> str | None:
    """Which floor the hold would cut, with the numbers; None when it cuts none."""
    return _problem(hold, snap, Rights.of(snap))


def _problem(hold: HeldSetting, snap: Snapshot, rights: Rights) -> str | None:
    s = hold.setting
    floor = rights.floors.get(s.target, NOTHING)
    value = hold.value if hold.value is not None else snap.settings.get(s)
    if value is None or floor == NOTHING:
        return None
    if s.knob == "cpuset.cpus":
        return _too_few_cpus(value, floor)
    if not isinstance(value, int | float):
        return None
    if s.knob in FLOORED and value < least_cap(s.knob, floor, snap.node):
        return _cut(s.knob, value, least_cap(s.knob, floor, snap.node), floor)
    if s.knob == "memory.min" and value < floor.memory // snap.node.page * snap.node.page:
        return _cut(s.knob, value, floor.memory, floor)
    if s.knob == FREEZE and value and floor.cpu:
        return f"{s.knob} {value:g} leaves no CPU time, {spell('cpu', floor.cpu)} is promised"
    if s.knob in ("cpu.idle", "cpu.weight") and floor.cpu:
        return _too_little_time(s, value, floor, snap)
    return None


def _too_little_time(s: Setting, value: float, floor: Resources, snap: Snapshot) -> str | None:
    if snap.groups.get(s.target) is None:
        return None
    left = cpu_times(replace(snap, settings={**snap.settings, s: value}))[s.target].total
    if left >= floor.cpu - 1:  # one millicore is rounding
        return None
    return f"{s.knob} {value:g} leaves {left:.0f}m when all siblings run, {spell('cpu', floor.cpu)} is promised"


def _too_few_cpus(value: Value, floor: Resources) -> str | None:
    count = len(cpus(value))
    if not count or count * 1000 >= floor.cpu:
        return None
    return f"{count} CPUs are fewer than the promised {spell('cpu', floor.cpu)}"


def _cut(knob: str, value: float, least: float, floor: Resources) -> str:
    return f"{knob} {render(knob, value)} cuts the floor of {promised(knob, floor)}: at least {render(knob, least)}"
