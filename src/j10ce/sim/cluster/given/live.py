"""A cluster as it is: nodes, and owners with the pods that they have. What happened before is not known."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from j10ce.model.quantity import Duration, Quantity
from j10ce.scheduler.book.facts import NodeFacts, OwnerFacts, PodFacts
from j10ce.sim.cluster.given.arrivals import Arrival, promised_anew
from j10ce.sim.cluster.given.scenario import Kind, Scenario, ScenarioClass, ScenarioNodes, ScenarioTaint

DEFAULT_SLO: Final = 0.8
MOVABLE: Final[Mapping[str, Kind]] = {"Deployment": "Deployment", "ReplicaSet": "Deployment", "Job": "Deployment",
                                      "StatefulSet": "StatefulSet"}  # fmt: skip
PLAIN: Final = ("cpu", "memory", "pods")
SYSTEM: Final = "kube-system"


class LiveCluster(NamedTuple):
    scenario: Scenario
    owners: tuple[Arrival, ...]

    def arrivals(self, promised: Mapping[str, float]) -> Iterator[Arrival]:
        return (promised_anew(owner, promised) for owner in self.owners)


def live_cluster(nodes: Iterable[NodeFacts], pods: Iterable[PodFacts], horizon_s: float) -> LiveCluster:
    """Classes are made of SLOs: slo-0.9. Jobs go on: nobody knows how long they take."""
    grouped = defaultdict[tuple[str, str, str], list[PodFacts]](list)
    for pod in pods:
        if not pod.ended and pod.deleted is None:
            grouped[_owner(pod)].append(pod)
    owners = tuple(_arrival(n, grouped[key]) for n, key in enumerate(sorted(grouped)))
    classes = {o.class_: ScenarioClass(slo=o.slo, priority=o.priority) for o in owners if not o.fixed}
    groups = tuple(_node(node) for node in sorted(nodes, key=lambda node: node.name))
    return LiveCluster(Scenario(name="live", horizon=Duration(horizon_s), nodes=groups, classes=classes), owners)


def _owner(pod: PodFacts) -> tuple[str, str, str]:
    owner = pod.owner or OwnerFacts("Pod", pod.namespace, pod.name)
    return owner.namespace, owner.kind, owner.name


def _arrival(number: int, pods: list[PodFacts]) -> Arrival:
    """Pods that run come first: each takes the place of one replica."""
    pods.sort(key=lambda pod: (not pod.node, pod.name))
    first = pods[0]
    owner = first.owner
    slo = promised(first)
    return Arrival(
        at=0.0,
        number=number,
        name=f"{first.namespace}/{owner.name if owner else first.name}",
        class_=f"slo-{slo:g}",
        shape=first.shape,
        slo=slo,
        priority=first.priority,
        price=slo,
        kind=MOVABLE.get(owner.kind, "Pod") if owner else "Pod",
        slots=len(pods),
        annotations=first.annotations,
        labels=first.labels,
        namespace=first.namespace,
        nodes=tuple(pod.node for pod in pods if pod.node),
        fixed=first.namespace == SYSTEM or first.critical or owner is None or owner.kind not in MOVABLE,
    )


def promised(pod: PodFacts) -> float:
    """The SLO of its annotation, or its owner's; the default where none can be read."""
    for text in (pod.annotations.get("slo", ""), pod.owner.slo if pod.owner else ""):
        try:
            slo = float(text)
        except ValueError:
            continue
        if math.isfinite(slo) and 0 <= slo <= 1:
            return slo
    return DEFAULT_SLO


def _node(node: NodeFacts) -> ScenarioNodes:
    has = node.allocatable
    return ScenarioNodes(
        name=node.name,
        cpu=Quantity(Fraction(has.get("cpu", 0), 1000)),
        memory=Quantity(has.get("memory", 0)),
        pods=has.get("pods", 0),
        resources={name: Quantity(amount) for name, amount in has.items() if name not in PLAIN},
        labels=node.labels,
        taints=tuple(ScenarioTaint(key=t.key, value=t.value, effect=t.effect) for t in node.taints),
        unschedulable=node.unschedulable,
    )
