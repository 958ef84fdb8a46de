"""Nodes and pods of Kubernetes as the fleet's ledger takes them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.nodes import belonging, difference
from j10ce.manager.kube.roster import KubeRoster
from j10ce.model.kinds import Meta, MinimalReservationPolicy, NodeQoS
from j10ce.model.kube.native import Node, read_amount
from j10ce.model.kube.pod import Pod
from j10ce.model.quantity import Quantity
from j10ce.model.stored import Key
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.scheduler.ledger.pledge import Charge
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, reservation, resources
from tests.hearing import by_heartbeat

DB = "MinimalReservationPolicy/shop/db"


class World:
    """What mirrors would hold."""

    def __init__(self) -> None:
        store = MemoryStore(lambda: WALL)
        book = Occupancy()
        self.occupants = Occupants(store, View(store), lambda: WALL, book, Offers())
        self.roster = KubeRoster(self.occupants, book, by_heartbeat(lambda: WALL))
        self.policies: list[MinimalReservationPolicy] = []
        self.reported: list[NodeQoS] = []

    def node(self, name: str = "n1", cpu: str = "8", *, ready: str = "True", **spec: Any) -> None:
        has = {"cpu": cpu, "memory": "32Gi"}
        raw = {
            "metadata": {"name": name, "labels": {"zone": "a"}},
            "spec": spec,
            "status": {"allocatable": has, "conditions": [{"type": "Ready", "status": ready}]},
        }
        self.occupants._nodes.held[Key("Node", "", name)] = msgspec.convert(raw, Node, dec_hook=read_amount)  # type: ignore[assignment]

    def pod(self, name: str, cpu: str = "1", node: str = "n1", namespace: str = "shop", **labels: str) -> None:
        resources = {"requests": {"cpu": cpu}}
        raw = {
            "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": resources}]},
        }
        self.occupants._take_pod(msgspec.convert(raw, Pod, dec_hook=read_amount), gone=False)

    def look(self) -> Mapping[str, Any]:
        return {node.name: node for node in self.roster.look(self.reported, self.policies, WALL).fresh}


def test_pods_that_nobody_promised_anything_occupy_what_they_ask_for() -> None:
    world = World()
    world.node()
    world.pod("web", cpu="3")
    node = world.look()["n1"]
    assert node.capacity == resources(cpu="8", memory="32Gi")
    assert node.occupied == {"shop": resources(cpu="3")}
    assert not node.claimed
    assert node.open


def test_a_pod_that_may_stand_on_a_unit_is_charged_with_what_it_asks_for() -> None:
    world = World()
    world.node()
    world.policies = [reservation("db", namespace="shop", labels={"app": "db"}, cpu="2", units=1)]
    world.pod("db-0", cpu="3", app="db")
    world.pod("db-1", cpu="500m", app="db")
    node = world.look()["n1"]
    assert node.charged == {DB: Charge(2, resources(cpu="2500m"))}
    assert node.claimed == {"shop": resources(cpu="2500m")}
    assert node.occupied == {"shop": resources(cpu="1")}, "what the first asks for beyond its floor"


def test_a_floor_without_units_counts_in_full() -> None:
    world = World()
    world.node()
    world.policies = [reservation("db", namespace="shop", cpu="25%")]
    world.pod("db-0", cpu="500m")
    assert world.look()["n1"].claimed == {"shop": resources(cpu="2")}


def test_ignored_pods_and_other_namespaces_hold_nothing() -> None:
    world = World()
    world.node()
    world.policies = [reservation("db", namespace="shop", cpu="2", units=1)]
    world.pod("db-0", **{"j10ce.io/ignore": "true"})
    world.pod("db-1", namespace="other")
    assert not world.look()["n1"].charged


def test_an_unchanged_cluster_is_no_news_and_a_policy_touches_only_its_nodes() -> None:
    world = World()
    world.node("n1")
    world.node("n2")
    world.pod("web", node="n1")
    world.pod("db-0", node="n2", app="db")
    world.look()
    assert not world.look()
    world.policies = [reservation("db", namespace="shop", labels={"app": "db"}, cpu="2", units=1)]
    assert set(world.look()) == {"n2"}
    world.policies = []
    assert world.look()["n2"].charged == {}


def test_a_node_that_is_not_ready_is_lost_and_one_that_is_deleted_is_gone() -> None:
    world = World()
    world.node("n1")
    world.look()
    world.node("n1", ready="Unknown")
    lost = world.roster.look((), (), WALL)
    assert lost.fewer
    assert not any(lost.fresh[0].capacity)
    assert [name for name, _ in world.roster.lost()] == ["n1"]
    world.occupants._nodes.held.clear()
    assert set(world.roster.look((), (), WALL).gone) == {"n1"}


def test_who_takes_no_units() -> None:
    world = World()
    world.node("cordoned", unschedulable=True)
    world.node("control", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])
    world.node("dedicated", taints=[{"key": "team", "value": "ai", "effect": "NoSchedule"}])
    assert {name: node.open for name, node in world.look().items()} == {
        "cordoned": False, "control": False, "dedicated": True,
    }  # fmt: skip


def test_extended_resources_are_whole_numbers_and_end_with_their_reason() -> None:
    lent = {"batch-cpu": Quantity.parse("12500m"), "batch-memory": Quantity.parse("1Gi")}
    fields = {"j10ce.io/batch-cpu": "12500", "j10ce.io/batch-memory": str(1 << 30)}
    bare, full = (
        msgspec.convert({"status": {"allocatable": has}}, Node, dec_hook=read_amount)
        for has in ({"cpu": "8"}, {"cpu": "8", **fields})
    )
    assert difference(bare, lent) == fields
    assert difference(full, lent) == {}
    assert difference(full, {}) == dict.fromkeys(fields)


def test_a_nodeqos_belongs_to_its_node() -> None:
    raw = {"metadata": {"name": "n1", "uid": "u1", "labels": {"zone": "a"}}}
    owned = belonging(NodeQoS(metadata=Meta(name="n1", labels={"old": "x"})), msgspec.convert(raw, Node))
    assert owned.metadata.labels == {"zone": "a"}
    assert [(o.kind, o.uid) for o in owned.metadata.owner_references] == [("Node", "u1")]
    assert belonging(owned, msgspec.convert(raw, Node)) == owned
