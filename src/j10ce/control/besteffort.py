"""Who runs on what the others leave, and which cgroups stand for them."""

from __future__ import annotations

import math
from collections.abc import Collection

from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Snapshot


def cover(snap: Snapshot, wanted: Collection[TargetId]) -> dict[TargetId, tuple[TargetId, ...]]:
    """The fewest targets to act on, each with the workloads it stands for.

    A group of ours stands for its workloads where all of its children are wanted; elsewhere, and for
    adopted workloads, the workload stands for itself. What has ended counts no more, though its cgroup is still there.
    """
    covered: dict[TargetId, tuple[TargetId, ...]] = {}
    whole: dict[TargetId, bool] = {}
    for target in sorted(wanted):
        parent = snap.groups.parent(target)
        group = snap.groups.get(parent) if parent is not None else None
        if group is None or not group.owned:
            covered[target] = (target,)
            continue
        if group.target not in whole:
            children = tuple(c for c in snap.groups.children[group.target] if not _ended(snap, c))
            whole[group.target] = not group.foreign and all(c in wanted for c in children)
            if whole[group.target]:
                covered[group.target] = children
        if not whole[group.target]:
            covered[target] = (target,)
    return covered


def _ended(snap: Snapshot, child: TargetId) -> bool:
    return child.startswith("workload/") and child not in snap.workloads


def idlers(snap: Snapshot) -> dict[TargetId, tuple[TargetId, ...]]:
    """What is to run only on idle CPUs. A CPU floor and idleness exclude each other; the floor wins."""
    wanted = {t for t, e in snap.entitlements.items() if e.chosen and e.cpu.idle and not e.floor.cpu}
    return cover(snap, {t for t in wanted if not resizing(snap, t)})


def resizing(snap: Snapshot, target: TargetId) -> bool:
    """Its maker is about to write its CPU time: an idle group takes no weight, a capped one on v1 no higher quota."""
    workload = snap.workloads.get(target)
    return workload is not None and workload.resizing


def has_capped_parts(snap: Snapshot, target: TargetId) -> bool:
    """cgroup v1 takes no quota inside a smaller one: a container that has one could not be started again."""
    workload, support = snap.workloads.get(target), snap.support.get("cpu.max")
    on_v1 = support is not None and support.via == "cgroup1"
    return on_v1 and workload is not None and any(p.limits.cpu != math.inf for p in workload.parts)
