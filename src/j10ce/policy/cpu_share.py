"""How much CPU time each group has for certain: when every sibling, foreign ones included, wants to run.

A group's weight counts on the CPUs that it may use, evenly. CPUs that every cpuset treats alike form one cell:
    time(child, cell) = time(parent, cell) · density(child) / Σ densities there   [millicores],  density = weight / CPUs
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


def cpu_times(snap: Snapshot) -> dict[TargetId, CpuTime]:
    cells = _cells(snap)
    whole = tuple(1000.0 * len(cell) for cell in cells)
    found = {ROOT: CpuTime(whole, snap.node.cpus, 0.0, 0.0, math.inf)}
    for group in snap.groups.from_top():
        children = snap.groups.children.get(group, ())
        if children:
            found |= _divide(snap, found[group], group, children, cells)
    return found


def weight(snap: Snapshot, target: TargetId) -> float:
    """In shares; a group with cpu.idle weighs next to nothing, whatever its weight says."""
    idle = snap.settings.get(Setting(target, "cpu.idle")) == 1.0
    return IDLE_SHARES if idle else _number(snap, target, "cpu.weight")


def _divide(
    snap: Snapshot, above: CpuTime, group: TargetId, children: Sequence[TargetId], cells: Sequence[Cpus]
) -> Mapping[TargetId, CpuTime]:
    weights = {c: weight(snap, c) for c in children}
    cpus = {c: _cpus(snap, c, above.cpus) for c in children}
    foreign = math.fsum(f.weight for f in snap.groups[group].foreign)
    rivals = math.fsum(weights.values()) + foreign
    density = {c: weights[c] / len(cpus[c]) for c in children}
    everyone = [
        foreign / len(above.cpus) + math.fsum(density[c] for c in children if cell <= cpus[c]) for cell in cells
    ]
    return {
        c: _capped(
            tuple(
                time * density[c] / total if cell <= cpus[c] and total else 0.0
                for time, cell, total in zip(above.cells, cells, everyone, strict=True)
            ),
            CpuTime((), cpus[c], weights[c], rivals, _number(snap, c, "cpu.max") * 1000 / PERIOD_US),
        )
        for c in children
    }


def _capped(cells: tuple[float, ...], to: CpuTime) -> CpuTime:
    total = math.fsum(cells)
    return to._replace(cells=tuple(t * to.quota / total for t in cells) if total > to.quota else cells)


def _cells(snap: Snapshot) -> list[Cpus]:
    """The coarsest parts of the machine that no cpuset divides."""
    placements = {v for s, v in snap.settings.items() if s.knob == "cpuset.cpus" and isinstance(v, frozenset) and v}
    ordered = sorted(placements, key=sorted)
    found: dict[tuple[bool, ...], set[int]] = {}
    for cpu in snap.node.cpus:
        found.setdefault(tuple(cpu in p for p in ordered), set()).add(cpu)
    return [frozenset(cell) for cell in found.values()]


def _cpus(snap: Snapshot, target: TargetId, above: Cpus) -> Cpus:
    """A placement that leaves nothing of the parent's CPUs falls back to them, as the kernel's does."""
    value = snap.settings.get(Setting(target, "cpuset.cpus"))
    return (value & above or above) if isinstance(value, frozenset) and value else above


def _number(snap: Snapshot, target: TargetId, knob: str) -> float:
    value = snap.settings.get(Setting(target, knob), KNOBS[knob].default)
    return float(value) if isinstance(value, float | int) else math.inf
