"""What each memory node has, and what of the protected runs there alone: best effort has to leave that alone there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from j10ce.model.knob import Setting, TargetId
from j10ce.model.machine.topology import Cpus
from j10ce.model.snapshot import Snapshot

ByZone = dict[str, dict[str, dict[str, float]]]  # memory node, resource, whose it is


class Taken(NamedTuple):
    """What one of the protected takes of a resource, in the ledger's unit."""

    target: TargetId
    resource: str
    usage: float
    request: float


def by_zone(snap: Snapshot, claims: Callable[[], Iterable[Taken]]) -> ByZone:
    """Nothing where there is one node alone, or where its CPUs are hidden."""
    numa = snap.node.topology.by_numa(snap.node.cpus)
    if len(numa) < 2:
        return {}
    zones: ByZone = {f"{zone}": _capacity(snap, zone, cpus) for zone, cpus in numa.items()}
    for claim in claims():
        at = [*_bound(snap, claim.target, numa)]
        for zone in at if len(at) < len(numa) else ():
            if (sums := zones[zone].get(claim.resource)) is not None:
                sums["usage"] += claim.usage / len(at)
                sums["request"] += claim.request / len(at)
                sums["larger"] += max(claim.usage, claim.request) / len(at)
    return zones


def _capacity(snap: Snapshot, zone: int, cpus: Cpus) -> dict[str, dict[str, float]]:
    memory = snap.node.topology.memory.get(zone)
    amounts = {"cpu": len(cpus) * 1000.0, **({} if memory is None else {"memory": float(memory)})}
    return {name: {"capacity": n, "usage": 0.0, "request": 0.0, "larger": 0.0} for name, n in amounts.items()}


def _bound(snap: Snapshot, target: TargetId, numa: Mapping[int, Cpus]) -> Iterator[str]:
    """The nodes that its CPUs are of; memory follows the CPUs that first touch it."""
    cpus = snap.settings.get(Setting(target, "cpuset.cpus"))
    if isinstance(cpus, frozenset):
        yield from (f"{zone}" for zone, there in numa.items() if cpus & there)
