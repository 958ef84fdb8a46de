"""Which nodes can hold a workload at all. A filter is one rule; the table lists those in force.

The extension points are those of the Kubernetes scheduling framework: a Filter here answers for all nodes at once.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from msgspec import UNSET

from j10ce.model.resource import RESOURCES, spell
from j10ce.policy.entitlement.ledger import NAMED_HOLDERS
from j10ce.policy.select import compiled
from j10ce.scheduler.cluster import Cluster, Mask
from j10ce.scheduler.place.demand import Demand

# What a floor of each resource needs of the kernel: any one of these knobs.
KEPT_BY: Final = {"cpu": ("cpu.weight",), "memory": ("memory.min", "memory.low")}


class Filter(Protocol):
    name: str

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        """True for every node that the rule allows. Pure: the same answer for the same arguments."""
        ...

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        """Why `filter` does not allow the node, with numbers; asked for no other one."""
        ...


class Named:
    name = "named"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        wanted = demand.request.node
        return np.array([not wanted or name == wanted for name in cluster.names], np.bool_)

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        return f"spec.node asks for {demand.request.node}"


class Ready:
    name = "ready"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        return ~cluster.silent

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        silent_s = cluster.silent_s[node]
        if np.isinf(silent_s):
            return "no report of its agent counts"
        return f"its agent is silent for {silent_s:.0f} s or more"


class Open:
    name = "open"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        return ~cluster.cordoned

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        return f"it is cordoned; `j10ce-qos uncordon {cluster.names[node]}` opens it"


class Selected:
    name = "selected"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        wanted = demand.request.selector
        if wanted is UNSET:
            return np.ones(len(cluster.names), np.bool_)
        test = compiled(wanted)
        return np.array([test(labels) for labels in cluster.labels], np.bool_)

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        return "its labels do not match spec.nodeSelector"


class Able:
    """A promise is made only where the kernel can keep it."""

    name = "able"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        able = np.ones(len(cluster.names), np.bool_)
        if demand.request.unenforced:
            return able
        for resource, knobs in KEPT_BY.items():
            asked = demand.floor[:, RESOURCES.index(resource)] > 0
            able &= ~asked | (cluster.armed & _any(cluster, knobs))
        return able

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        if not cluster.armed[node]:
            return "its agent is not armed, so no floor would be kept there"
        lacking = [
            f"a {resource} floor needs {' or '.join(knobs)}"
            for resource, knobs in KEPT_BY.items()
            if demand.floor[node, RESOURCES.index(resource)] > 0 and not _any(cluster, knobs)[node]
        ]
        return f"its kernel cannot keep the floor: {'; '.join(lacking)}"


class Room:
    """Next to everything promised, unused units of all policies included."""

    name = "room"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        return np.asarray(((demand.need <= cluster.free) | (demand.need == 0)).all(axis=1), np.bool_)

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        free, need = cluster.free[node], demand.need[node]
        lacks = []
        for n, resource in enumerate(RESOURCES):
            if need[n] and need[n] > free[n]:
                whole = cluster.room[node, n]
                lacks.append(
                    f"{resource} {spell(resource, need[n])} wanted, {spell(resource, max(0, free[n]))} free of "
                    f"{spell(resource, whole)}{_holders(cluster, node, n)}"
                    if whole
                    else f"{resource} {spell(resource, need[n])} wanted, and it has no measure of {resource}"
                )
        return "; ".join(lacks)


class Spare:
    """Best-effort work runs on what the protected leave: within the node's reclaimable amounts."""

    name = "spare"

    def filter(self, demand: Demand, cluster: Cluster, /) -> Mask:
        return np.asarray((demand.spare <= cluster.spare).all(axis=1), np.bool_)

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        lacks = [
            f"{r} {spell(r, want)} wanted by best effort, {spell(r, has)} reclaimable"
            for r, want, has in zip(RESOURCES, demand.spare[node], cluster.spare[node], strict=True)
            if want > has
        ]
        return "; ".join(lacks)


def _any(cluster: Cluster, knobs: tuple[str, ...]) -> Mask:
    having = np.zeros(len(cluster.names), np.bool_)
    for knob in knobs:
        if knob in cluster.features:
            having |= cluster.features[knob]
    return having


def _holders(cluster: Cluster, node: int, n: int) -> str:
    largest = cluster.holders(node, n)[:NAMED_HOLDERS]
    held = ", ".join(f"{source} {spell(RESOURCES[n], amount)}" for source, amount in largest)
    return f", held unused by {held}" if held else ""


FILTERS: Final[tuple[Filter, ...]] = (Named(), Ready(), Open(), Selected(), Able(), Room(), Spare())
