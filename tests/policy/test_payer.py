"""Who pays for a workload: the node that enforces, the fleet, placement and the extender name the same policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.roster import KubeRoster
from j10ce.model.kinds import Condition, Meta, MinimalReservationPolicy, NodeQoS, NodeQoSStatus, NodeReport, Witness
from j10ce.model.kinds import Workload as WorkloadObject
from j10ce.model.kube.native import Node, read_amount
from j10ce.model.kube.pod import Pod
from j10ce.model.quantity import Quantity
from j10ce.model.resource import NOTHING
from j10ce.model.stored import Event, Key
from j10ce.policy.document.document import NodeDocument, reference
from j10ce.policy.entitlement.resolve import amounts, resolve
from j10ce.policy.payer import rank
from j10ce.policy.select import matches
from j10ce.scheduler.cluster import assemble, row
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.scheduler.place.demand import demand, request
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, node, reservation, resources, workload
from tests.hearing import by_heartbeat

APPS = ("a", "b")
IGNORE = {"j10ce.io/ignore": "true"}


class Scene(NamedTuple):
    """One workload, the policies of its namespace, and machines of different shapes: `n1` is where it runs."""

    policies: Sequence[MinimalReservationPolicy]
    labels: dict[str, str]
    machines: dict[str, tuple[int, int]]  # CPUs, GiB


@st.composite
def scenes(draw: st.DrawFn, *, units: bool) -> Scene:
    """Every policy has a unit on `n1` that nobody uses, and there is room for all; or no policy has units."""
    every = []
    for n in range(draw(st.integers(1, 4))):
        asked = {"cpu": f"{draw(st.integers(0, 4))}00m", "memory": f"{draw(st.integers(0, 4))}Gi"}
        if not units and draw(st.booleans()):
            asked["cpu"] = f"{draw(st.integers(1, 9))}%"
        if draw(st.booleans()):
            asked["network"] = "100M"  # of which no machine here has a measure
        selected = draw(st.sampled_from([{}, *({"app": app} for app in APPS)]))
        every.append(_placed(reservation(f"p{n}", labels=selected, units=int(units), **asked), units=units))
    sizes = {name: (draw(st.sampled_from([8, 64])), draw(st.sampled_from([64, 512]))) for name in ("n1", "n2")}
    labels = {"app": draw(st.sampled_from(APPS)), **draw(st.sampled_from([{}, {}, IGNORE]))}
    return Scene([p for p in every if _asks(p)], labels, sizes)


def _asks(policy: MinimalReservationPolicy) -> bool:
    """The fleet admits no unit of nothing."""
    return any(q.amount or q.percent for q in (policy.spec.minimum.cpu, policy.spec.minimum.memory))


def _placed(policy: MinimalReservationPolicy, *, units: bool) -> MinimalReservationPolicy:
    admitted = Condition(type="Admitted", status="True", reason="Granted")
    witness = (Witness(node="n1", units=1),) if units else ()
    status = replace(policy.status, conditions=(admitted,), admitted_generation=1, witness=witness)
    meta = replace(policy.metadata, generation=1, uid=policy.metadata.name)
    return replace(policy, metadata=meta, status=status)


def by_the_node(scene: Scene) -> str:
    cpus, gib = scene.machines["n1"]
    units = {reference(p): p.spec.units for p in scene.policies}
    document = NodeDocument(node="n1", policies=tuple(scene.policies), units=units)
    made = resolve([workload("w", labels=scene.labels)], document, node(cpus, f"{gib}Gi"), wall=WALL)
    line = made.ledger.get("workload/default/w")
    return line.charged if line else ""


def covered(scene: Scene, payer: str) -> bool:
    """Whether a unit of its payer is all that the policies promise the workload together."""
    matching = [p for p in scene.policies if matches(p.spec.selector, scene.labels)]
    shapes = {reference(p): amounts(p.spec.minimum, NOTHING) for p in matching}
    return all(shape.fits(shapes[payer]) for shape in shapes.values())


def by_placement(scene: Scene) -> str:
    cluster = assemble(map(row, _nodes(scene)), scene.policies, {"n1": 0.0, "n2": 0.0}, wall=WALL)
    wanted = request(WorkloadObject(metadata=Meta(name="w", namespace="default", labels=scene.labels)), ())
    paying = int(demand(wanted, cluster).payer[0])
    return cluster.policies[paying].source if paying >= 0 else ""


class Kubernetes:
    """The fleet's roster and the extender's book, both fed with the same cluster."""

    def __init__(self, scene: Scene) -> None:
        store = MemoryStore(lambda: WALL)
        self.scene, self.view = scene, View(store)
        self.book = Occupancy()
        self.occupants = Occupants(store, self.view, lambda: WALL, self.book, Offers())
        for name, (cpus, gib) in scene.machines.items():
            has = {"cpu": str(cpus - 1), "memory": f"{gib - 3}Gi"}  # a kubelet keeps something for itself
            raw = {"metadata": {"name": name}, "status": {"allocatable": has}}
            made = msgspec.convert(raw, Node, dec_hook=read_amount)
            self.occupants._nodes.held[Key("Node", "", name)] = made  # type: ignore[assignment]
            self.book.put_node(name, resources(**has))
        for obj in (*_nodes(scene), *scene.policies):
            self.view.documents.take(Event("ADDED", obj, "1"))
            self.occupants._take(Event("ADDED", obj, "1"), None)
        raw = {
            "metadata": {"name": "w", "namespace": "default", "uid": "w", "labels": scene.labels},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
        }
        self.occupants._take_pod(msgspec.convert(raw, Pod, dec_hook=read_amount), gone=False)

    def by_the_fleet(self) -> str:
        roster = KubeRoster(self.occupants, self.book, by_heartbeat(lambda: WALL))
        fresh = roster.look(_nodes(self.scene), self.scene.policies, WALL).fresh
        charged = next(n.charged for n in fresh if n.name == "n1")
        return next(iter(charged), "")

    def by_the_extender(self) -> str:
        held = self.book.counts[self.book.row["n1"]].unused
        return next((source for source in self.book.units.pledges if source not in held), "")


def _nodes(scene: Scene) -> list[NodeQoS]:
    return [
        NodeQoS(
            metadata=Meta(name=name),
            status=NodeQoSStatus(
                node=NodeReport(
                    armed=True, capacity={"cpu": Quantity.parse(cpus), "memory": Quantity.parse(f"{gib}Gi")}
                )
            ),
        )
        for name, (cpus, gib) in sorted(scene.machines.items())
    ]


@settings(max_examples=300, deadline=None)
@given(scenes(units=True))
def test_everyone_charges_the_same_policy_with_a_unit(scene: Scene) -> None:
    cluster, payer = Kubernetes(scene), by_the_node(scene)
    placement = by_placement(scene)
    assert placement == payer or (not placement and not covered(scene, payer)), "it names whose unit covers the floor"
    answers = {
        "the fleet": cluster.by_the_fleet(),
        "the extender": cluster.by_the_extender(),
    }
    assert answers == dict.fromkeys(answers, payer)


@settings(max_examples=200, deadline=None)
@given(scenes(units=False))
def test_the_node_and_the_fleet_charge_the_same_policy_without_units(scene: Scene) -> None:
    assert Kubernetes(scene).by_the_fleet() == by_the_node(scene)


@pytest.mark.parametrize(
    ("cpus", "payer"),
    [pytest.param(8, "cpu", id="few CPUs"), pytest.param(64, "memory", id="little memory")],
)
def test_it_is_the_share_of_its_own_node_that_counts(cpus: int, payer: str) -> None:
    whole = resources(cpus, "64Gi")
    ranks = [rank(resources("1"), "cpu", whole), rank(resources(0, "4Gi"), "memory", whole)]
    assert min(ranks)[1] == payer


def test_the_name_decides_between_equals_and_what_is_not_measured_counts_nothing() -> None:
    whole = resources("8", "64Gi")
    large = rank(resources("1", network="1G"), "a", whole)
    assert large == rank(resources("1"), "a", whole) < rank(resources("1"), "b", whole)
