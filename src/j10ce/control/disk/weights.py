"""Weights by which io.cost divides a disk so that floors hold, on every level of the tree.

share of a workload  =  floor of reads / what the disk reads  +  floor of writes / what it writes
share of a group     =  what it promises inside  +  its part of the rest, by how many live there
weight of a child    =  100 · its share / what one without a promise has of the rest

So whoever has no promise, ours or not, stays at the 100 that everyone is born with, and nobody is left with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from j10ce.control.disk.places import modelled
from j10ce.model.knob import ROOT, TargetId
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Snapshot

BORN: Final = 100.0
MOST: Final = 10_000.0
LEAST_REST: Final = 0.02  # of a group, that stays for those without a promise


def share(floor: Resources, disk: Disk) -> float:
    """Of the time of a calibrated disk."""
    return floor.disk_read / max(1, disk.read_bps) + floor.disk_write / max(1, disk.write_bps)


def shares(snap: Snapshot, disks: list[Disk]) -> Mapping[TargetId, float]:
    """Of each workload with a floor, on the disk where it is most."""
    floors = {
        t: e.floor for t, e in snap.entitlements.items() if e.chosen and (e.floor.disk_read or e.floor.disk_write)
    }
    return {t: min(1.0, max(share(floor, d) for d in disks)) for t, floor in floors.items()} if disks else {}


def reachable(snap: Snapshot, target: TargetId) -> bool:
    """Whether every group above is ours: others' weights are not changed, and a weight counts among siblings alone."""
    above = [up for up in snap.groups.ancestors(target) if up != ROOT]
    return target in snap.groups.by_target and all(snap.groups[up].owned for up in above)


def weights(snap: Snapshot) -> Mapping[TargetId, float]:
    """Of workloads with a floor, and of the groups above them."""
    promised = {t: s for t, s in shares(snap, modelled(snap.node.disks)).items() if reachable(snap, t)}
    inside: dict[TargetId, float] = dict(promised)
    for target, part in promised.items():
        for up in snap.groups.ancestors(target):
            inside[up] = inside.get(up, 0.0) + part
    return dict(_divide(snap, ROOT, 1.0, inside)) if promised else {}


def _divide(
    snap: Snapshot, group: TargetId, whole: float, inside: Mapping[TargetId, float]
) -> Iterator[tuple[TargetId, float]]:
    children = snap.groups.children.get(group, ())
    living = {c: _living(snap, c) for c in children}
    everyone = sum(living.values()) + len(snap.groups[group].foreign if group in snap.groups.by_target else ())
    rest = max(LEAST_REST * whole, whole - sum(inside.get(c, 0.0) for c in children))
    for child in children:
        if child not in inside:
            continue
        part = inside[child] + rest * living[child] / everyone
        yield child, min(MOST, math.ceil(BORN * part * everyone / rest))
        yield from _divide(snap, child, part, inside)


def _living(snap: Snapshot, target: TargetId) -> int:
    """Workloads at or below a place; a group without any counts once, like whoever is not ours."""
    if target in snap.workloads:
        return 1
    return max(1, sum(_living(snap, c) for c in snap.groups.children.get(target, ())))
