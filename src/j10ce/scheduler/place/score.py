"""Which of the nodes that can hold a workload is the best one. A scorer is one opinion; the table weighs them."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np

from j10ce.model.resource import RESOURCES, spell
from j10ce.scheduler.cluster import Cluster, Scores, share_of
from j10ce.scheduler.place.demand import Demand

CPU, MEMORY = RESOURCES.index("cpu"), RESOURCES.index("memory")


class Scorer(Protocol):
    name: str

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores | None:
        """0 (worst) to 1 (best) for every node, those that were filtered out included. Pure.

        None: it has nothing to say about this workload, and its weight does not count.
        """
        ...

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        """The numbers behind the score of one node."""
        ...


class Weighed(NamedTuple):
    scorer: Scorer
    weight: float


class AtWitness:
    """A workload goes where a unit is held for it: elsewhere it would take room and leave the unit unused."""

    name = "witness"

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores | None:
        here = demand.payer >= 0
        return here.astype(np.float64) if here.any() else None

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        payer = demand.payer[node]
        if payer < 0:
            return "no unit is held for it here"
        held = cluster.policies[payer]
        return f"takes one of {held.unused[node]} unused units of {held.source}"


class LeastPromised:
    """Spread promises, so that the largest floor to come still finds room and a lost node costs the least."""

    name = "least-promised"

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores:
        return _left(demand.shares.max(axis=1, initial=0.0))

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        shares = demand.shares[node]
        largest = int(shares.argmax())
        return f"{shares[largest]:.0%} of its {RESOURCES[largest]} would be promised"


class Balanced:
    """CPU and memory run out together, so that neither is stranded."""

    name = "balanced"

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores:
        return _left(np.abs(demand.shares[:, CPU] - demand.shares[:, MEMORY]))

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        shares = demand.shares[node]
        return f"cpu {shares[CPU]:.0%} and memory {shares[MEMORY]:.0%} would be promised"


class Unlent:
    """Where others run on lent units, every floor that arrives may send someone away."""

    name = "unlent"

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores | None:
        if not cluster.lendable.any():
            return None
        return _left(share_of(cluster.lendable, cluster.room).max(axis=1, initial=0.0))

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        lent = [f"{r} {spell(r, n)}" for r, n in zip(RESOURCES, cluster.lendable[node], strict=True) if n]
        return f"may be lent: {', '.join(lent)}" if lent else "nothing is lent"


class Calm:
    """Away from machines that are expected to be busy."""

    name = "calm"

    def score(self, demand: Demand, cluster: Cluster, /) -> Scores:
        return _left(cluster.load)

    def why(self, demand: Demand, cluster: Cluster, node: int, /) -> str:
        return f"{cluster.load[node]:.0%} of it expected in use at the peak"


def _left(share: Scores) -> Scores:
    """What a share leaves, from 0 to 1."""
    return np.clip(1.0 - share, 0.0, 1.0)


SCORERS: Final[tuple[Weighed, ...]] = (
    Weighed(AtWitness(), 8.0),  # above all others together
    Weighed(LeastPromised(), 3.0),
    Weighed(Calm(), 2.0),
    Weighed(Balanced(), 1.0),
    Weighed(Unlent(), 1.0),
)
