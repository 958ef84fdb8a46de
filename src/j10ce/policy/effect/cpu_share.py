"""How much CPU time each group has for certain: when every sibling, foreign ones included, wants to run.

CPUs that every cpuset treats alike form one cell. A group's weight counts where those inside run, by what they weigh:
    load(group, cell) = weight · Σ loads inside, there / Σ loads inside     evenly over its CPUs where nobody is inside
    time(child, cell) = time(parent, cell) · load(child, cell) / Σ loads there                            [millicores]
A quota cuts the sum. What a sibling with a quota leaves over is not counted: a floor must not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from j10ce.model.knob import IDLE_SHARES, KNOBS, PERIOD_US, ROOT, Setting, TargetId
from j10ce.model.snapshot import Snapshot

Cpus = frozenset[int]


class CpuTime(NamedTuple):
    """What one group has, and what the contest with its siblings was."""

    cells: tuple[float, ...]  # millicores
    cpus: Cpus
    weight: float
    rivals: float  # all weights at its level, its own included
    quota: float  # millicores

    @property
    def total(self) -> float:
        return math.fsum(self.cells)


Cells = tuple[float, ...]  # an amount for each cell


def cpu_times(snap: Snapshot) -> dict[TargetId, CpuTime]:
    cells, order = _cells(snap), snap.groups.from_top()
    loads = _loads(snap, order, cells)
    each = snap.node.capacity.cpu / max(1, len(snap.node.cpus))
    times = {ROOT: CpuTime(tuple(each * len(cell) for cell in cells), snap.node.cpus, 0.0, 0.0, math.inf)}
    for group in order:
        children = snap.groups.children.get(group, ())
        if children:
            times |= _divide(snap, times[group], group, children, cells, loads)
    return times


def weight(snap: Snapshot, target: TargetId) -> float:
    """In shares; a group with cpu.idle weighs next to nothing, whatever its weight says."""
    idle = snap.settings.get(Setting(target, "cpu.idle")) == 1.0
    return IDLE_SHARES if idle else _number(snap, target, "cpu.weight")


def parts_quota(snap: Snapshot, target: TargetId) -> float:
    """Millicores that the parts of a workload may use together: whoever made them limits them, and we lift no limit."""
    parts = [c for c in snap.groups.children.get(target, ()) if c.startswith("part/")]
    return math.fsum(_number(snap, p, "cpu.max") * 1000 / PERIOD_US for p in parts) if parts else math.inf


def _divide(
    snap: Snapshot,
    above: CpuTime,
    group: TargetId,
    children: Sequence[TargetId],
    cells: Sequence[Cpus],
    loads: Mapping[TargetId, Cells],
) -> Mapping[TargetId, CpuTime]:
    foreign = math.fsum(f.weight for f in snap.groups[group].foreign)
    everyone = _sums([*(loads[c] for c in children), _evenly(foreign, above.cpus, cells)])
    rivals = math.fsum(everyone)
    return {
        c: _capped(
            tuple(
                [
                    time * load / total if load else 0.0
                    for time, load, total in zip(above.cells, loads[c], everyone, strict=True)
                ]
            ),
            CpuTime(
                (),
                _cpus(snap, c, above.cpus),
                math.fsum(loads[c]),
                rivals,
                _number(snap, c, "cpu.max") * 1000 / PERIOD_US,
            ),
        )
        for c in children
    }


def _capped(cells: tuple[float, ...], to: CpuTime) -> CpuTime:
    total = math.fsum(cells)
    return to._replace(cells=tuple(t * to.quota / total for t in cells) if total > to.quota else cells)


def _loads(snap: Snapshot, order: Sequence[TargetId], cells: Sequence[Cpus]) -> dict[TargetId, Cells]:
    """What every group weighs in each cell."""
    allowed = {ROOT: snap.node.cpus}
    for target in order[1:]:
        allowed[target] = _cpus(snap, target, allowed[snap.groups.parent(target) or ROOT])
    loads: dict[TargetId, Cells] = {}
    for target in reversed(order):
        own, cpus = weight(snap, target), allowed[target]
        children = snap.groups.children.get(target, ())
        if len(cells) == 1 or not children:
            loads[target] = _evenly(own, cpus, cells)
            continue
        foreign = math.fsum(f.weight for f in snap.groups[target].foreign)
        inside = _sums([*(loads[c] for c in children), _evenly(foreign, cpus, cells)])
        total = math.fsum(inside)
        loads[target] = tuple([own * load / total for load in inside]) if total else _evenly(own, cpus, cells)
    return loads


def _evenly(weight: float, cpus: Cpus, cells: Sequence[Cpus]) -> Cells:
    return tuple([weight * len(cell) / len(cpus) if cell <= cpus else 0.0 for cell in cells])


def _sums(rows: Sequence[Cells]) -> Cells:
    return tuple([math.fsum(column) for column in zip(*rows, strict=True)])


def _cells(snap: Snapshot) -> list[Cpus]:
    """The coarsest parts of the machine that no cpuset divides."""
    placements = {v for s, v in snap.settings.items() if s.knob == "cpuset.cpus" and isinstance(v, frozenset) and v}
    ordered = sorted(placements, key=sorted)
    cells: dict[tuple[bool, ...], set[int]] = {}
    for cpu in snap.node.cpus:
        cells.setdefault(tuple(cpu in p for p in ordered), set()).add(cpu)
    return [frozenset(cell) for cell in cells.values()]


def _cpus(snap: Snapshot, target: TargetId, above: Cpus) -> Cpus:
    """A placement that leaves nothing of the parent's CPUs falls back to them, as the kernel's does."""
    value = snap.settings.get(Setting(target, "cpuset.cpus"))
    return (value & above or above) if isinstance(value, frozenset) and value else above


def _number(snap: Snapshot, target: TargetId, knob: str) -> float:
    value = snap.settings.get(Setting(target, knob), KNOBS[knob].default)
    return float(value) if isinstance(value, float | int) else math.inf
