"""The owners and pods of one run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, OwnerFacts, PodFacts
from j10ce.sim.cluster.given.arrivals import Arrival, amounts
from j10ce.sim.cluster.given.limits import names
from j10ce.sim.cluster.given.scenario import Scenario
from j10ce.sim.cluster.tally import OwnerSums


class SimPod:
    """One pod, from its making until nothing is left of it."""

    __slots__ = ("deleted", "of", "pod", "slot", "started")

    def __init__(self, of: SimOwner, slot: int, pod: PodFacts) -> None:
        self.of, self.slot, self.pod = of, slot, pod
        self.started = math.inf
        self.deleted = False

    def ran(self, now: float) -> float:
        return max(0.0, now - self.started)


class SimOwner:
    """An owner that is there."""

    __slots__ = ("annotations", "arrival", "cpu", "done", "facts", "gone", "lives", "pods", "sums")

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival
        self.sums = OwnerSums()
        self.pods: dict[str, SimPod] = {}  # by uid
        self.lives = 0
        self.done = 0  # pods of a Job that succeeded
        self.gone = False
        self.cpu = dict(arrival.shape.requests).get("cpu", 0)
        self.annotations = {"slo": f"{arrival.slo:g}", **arrival.annotations}
        named = (arrival.kind, arrival.namespace, arrival.name)
        owner = OwnerFacts(*named, arrival.slots, self.annotations["slo"], arrival.completions)
        self.facts = None if arrival.kind == "Pod" else owner

    def next(self, slot: int, now: float) -> SimPod:
        """Its next pod."""
        arrival, life = self.arrival, self.lives
        self.lives += 1
        name = arrival.name if arrival.kind == "Pod" else f"{arrival.name}-{life}"
        pod = PodFacts(
            uid=f"{arrival.number}-{life}",
            namespace=arrival.namespace,
            name=name,
            shape=arrival.shape,
            labels=arrival.labels,
            annotations=self.annotations,
            scheduler=SCHEDULER,
            priority=arrival.priority,
            created=now,
            owner=self.facts,
        )
        made = self.pods[pod.uid] = SimPod(self, slot, pod)
        return made

    @property
    def recreates(self) -> bool:
        """A pod by itself that is gone stays so."""
        return not self.gone and self.arrival.kind != "Pod"


SCHEDULER = "j10ce-qos-scheduler"


def nodes(scenario: Scenario) -> Iterator[NodeFacts]:
    for group in scenario.nodes:
        amount = {
            "cpu": group.cpu.millicores(), "memory": group.memory.bytes(), "pods": group.pods,
            **amounts(group.resources),
        }  # fmt: skip
        taints = tuple(NodeTaint(t.key, t.value, t.effect) for t in group.taints)
        for name in names(group.name, group.count):
            labels = {"kubernetes.io/hostname": name, **group.labels}
            yield NodeFacts(name, labels, amount, taints, group.unschedulable or name in scenario.drain)
