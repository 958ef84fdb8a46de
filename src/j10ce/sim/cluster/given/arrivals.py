"""Who comes when: the owners of a scenario, in the order of time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from j10ce.model.quantity import Duration, Quantity
from j10ce.scheduler.book.facts import pairs
from j10ce.scheduler.book.shape import Shape, Toleration
from j10ce.sim.cluster import chance
from j10ce.sim.cluster.given.limits import names
from j10ce.sim.cluster.given.scenario import Kind, Scenario, ScenarioClass, ScenarioOwners

# What scores count for who asks for nothing, as Kubernetes does: 100m and 200Mi.
UNASKED: Final = (100, 200 << 20)

CONTROLLER: Final = "controller"  # annotation that tells owners apart in classic mode, which goes by nothing else


class Arrival(NamedTuple):
    """An owner that comes at `at`. `number` is its own under every policy; `nodes`: where pods of it run already."""

    at: float
    number: int
    name: str
    class_: str
    shape: Shape
    slo: float
    priority: int
    price: float  # of an hour of one pod
    kind: Kind = "Deployment"
    slots: int = 1
    completions: int = 0
    duration: float = math.inf
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    namespace: str = "default"
    nodes: tuple[str, ...] = ()
    fixed: bool = False  # it only takes room: nobody counts or moves it


def arrivals(scenario: Scenario, seed: int) -> Iterator[Arrival]:
    """By time. Those of one instant come in the order of the list, or in which chance has put them."""
    timed, untimed = list[Arrival](), list[Arrival]()
    first = 0
    for group in scenario.owners:
        (untimed if group.at is UNSET else timed).extend(_owners(group, scenario.classes[group.class_], first))
        first += group.count
    timed.sort(key=attrgetter("at", "number"))
    return merge(timed, _in_turn(scenario, untimed, seed), key=attrgetter("at"))


def _owners(group: ScenarioOwners, of: ScenarioClass, first: int) -> Iterator[Arrival]:
    at = 0.0 if isinstance(group.at, UnsetType) else group.at.seconds
    slo = of.slo if isinstance(group.slo, UnsetType) else group.slo
    pattern = Arrival(
        at=at,
        number=first,
        name=group.name,
        class_=group.class_,
        shape=_shape(group),
        slo=slo,
        priority=of.priority,
        price=slo if isinstance(of.price, UnsetType) else of.price,
        kind=group.kind,
        slots=group.replicas,
        completions=group.replicas if isinstance(group.completions, UnsetType) else group.completions,
        duration=group.duration.seconds if isinstance(group.duration, Duration) else math.inf,
    )
    for n, name in enumerate(names(group.name, group.count)):
        annotations = {CONTROLLER: name, **group.annotations}
        yield pattern._replace(at=at + n * group.every.seconds, number=first + n, name=name, annotations=annotations)


def _in_turn(scenario: Scenario, owners: list[Arrival], seed: int) -> Iterator[Arrival]:
    how = scenario.arrivals
    if how.order == "random":
        owners.sort(key=lambda owner: chance.share(seed, chance.ORDER, owner.number))
    at = 0.0
    for n, owner in enumerate(owners):
        yield owner._replace(at=at)
        wait = -math.log1p(-chance.share(seed, chance.ARRIVALS, n)) if how.poisson else 1.0
        at += wait * how.every.seconds


def promised_anew(arrival: Arrival, promised: Mapping[str, float]) -> Arrival:
    """With the SLO that its class has now, and the price where the SLO is the price."""
    if arrival.class_ not in promised:
        return arrival
    slo = promised[arrival.class_]
    return arrival._replace(slo=slo, price=slo if arrival.price == arrival.slo else arrival.price)


def shape(cpu: int, memory: int, others: Mapping[str, int] = {}) -> Shape:
    """Of a pod that asks for so many millicores, bytes and other units."""
    asked = {"cpu": cpu, "memory": memory, **others}
    requests = tuple(sorted((name, amount) for name, amount in asked.items() if amount))
    return Shape(requests=requests, weighed=(cpu or UNASKED[0], memory or UNASKED[1]))


def amounts(resources: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: math.ceil(amount.amount) for name, amount in resources.items()}


def _shape(group: ScenarioOwners) -> Shape:
    plain = shape(group.cpu.millicores(), group.memory.bytes(), amounts(group.resources))
    return plain._replace(
        node_selector=pairs(group.node_selector),
        tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in group.tolerations),
    )
