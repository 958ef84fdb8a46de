"""Events of pods and nodes: a turn makes one event, of whom it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from j10ce.kube.events import Subject
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.narrator import Narrator
from j10ce.model.kinds import (
    Condition,
    EffectiveFloor,
    Meta,
    NodeQoS,
    NodeQoSStatus,
    NodeReport,
    ReservationReport,
)
from j10ce.model.quantity import Quantity
from j10ce.model.stored import Event, Happening
from j10ce.policy.choose import Chooser
from j10ce.policy.profiles import builtin
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import reservation
from tests.manager.kube.test_extender import Cluster, pod

SOURCE = "MinimalReservationPolicy/shop/web"
PROFILE = "j10ce.io/qos-profile"


class Rig:
    """A narrator, and its events."""

    def __init__(self, occupants: Occupants, view: View, cluster: Cluster) -> None:
        self.cluster, self.occupants = cluster, occupants
        self.heard: list[tuple[str, str, str, str]] = []
        self.narrator = Narrator(occupants, view, self._tell)

    def _tell(self, about: Subject, what: Happening) -> None:
        self.heard.append((f"{about.kind}/{about.name}", what.type, what.reason, what.message))

    def report(self, ready: Any = "True", **node: Any) -> list[tuple[str, str, str, str]]:
        """The events when a node says this."""
        self.heard.clear()
        conditions = (Condition(type="Ready", status=ready, reason="Reported", message="m"),)
        status = NodeQoSStatus(node=NodeReport(**node), conditions=conditions)
        self.narrator.take(Event("MODIFIED", NodeQoS(metadata=Meta(name="a"), status=status), "3"), set())
        return list(self.heard)

    async def run(self, *pods: dict[str, Any]) -> None:
        for each in pods:
            epoch = self.occupants.heard.epoch
            self.cluster.tell(each, "ADDED")
            await self.occupants.heard.moved(epoch)


@asynccontextmanager
async def telling() -> AsyncIterator[Rig]:
    store, cluster = MemoryStore(lambda: 0.0), Cluster()
    for profile in builtin():
        await store.put(profile)
    await store.put(reservation("web", labels={"app": "web"}, namespace="shop", cpu="2"))
    view = View(store)
    occupants = Occupants(cluster, view, lambda: 0.0, Occupancy(), Offers())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(view.run()), group.create_task(occupants.run())]
        await view.ready()
        await occupants.ready()
        occupants._chooser = Chooser(builtin())  # else it knows them a moment after they are read
        made = Rig(occupants, view, cluster)
        assert made.report() == [], "whoever led before reported what stood"
        yield made
        for task in tasks:
            task.cancel()
    await store.close()


def short(workload: str) -> EffectiveFloor:
    return EffectiveFloor(
        node="a", workload=workload, resource="cpu", promised=Quantity(2), effective=Quantity(1), reason="capped",
        source=SOURCE,
    )  # fmt: skip


async def test_a_pod_hears_that_its_floor_has_no_effect() -> None:
    async with telling() as made:
        await made.run(pod("web-0", "1", node="a", app="web"))
        (event,) = made.report(effective=(short("shop/web-0"),))
        assert event[:3] == ("Pod/web-0", "Warning", "FloorNotEffective")
        assert event[3] == f"cpu 1 of the 2 that {SOURCE} promises: capped"
        assert made.report(effective=(short("shop/web-0"),)) == [], "once"
        assert made.report(effective=(short("shop/gone"),)) == [], "nobody is there to hear it"
        await made.run(pod("far", "1", node="b", app="web"))
        assert made.report(effective=(short("shop/far"),)) == [], "a node speaks of its own pods"
        assert made.report(effective=(replace(short("shop/web-0"), effective=Quantity(2)),)) == []


def bare(*names: str, of: int) -> ReservationReport:
    """What a node says of a policy that it could not grant to all of its pods."""
    return ReservationReport(
        source=SOURCE, workloads=of, unprotected=len(names), unprotected_workloads=names, refused="cpu 2 of 1 left"
    )


async def test_a_pod_hears_that_it_has_no_floor() -> None:
    async with telling() as made:
        web, others = pod("web-0", "1", node="a", app="web"), pod("db", "1", node="a", app="db")
        await made.run(web, others)
        (event,) = made.report(reservations=(bare("web-0", of=1),))
        assert event[:3] == ("Pod/web-0", "Warning", "Unprotected")
        assert "1 of 1 pods" in event[3]
        assert "cpu 2 of 1 left" in event[3]
        assert made.report(reservations=(bare("web-0", of=1),)) == [], "once"


async def test_pods_that_have_their_floor_hear_nothing_of_one_that_has_none() -> None:
    async with telling() as made:
        await made.run(*(pod(f"web-{n}", "1", node="a", app="web") for n in range(2)))
        assert [t[0] for t in made.report(reservations=(bare("web-1", of=2),))] == ["Pod/web-1"]


async def test_a_pod_that_comes_while_others_have_no_floor_is_reported_as_well() -> None:
    async with telling() as made:
        await made.run(pod("web-0", "1", node="a", app="web"))
        made.report(reservations=(bare("web-0", of=1),))
        assert made.report(reservations=(bare("web-0", "web-1", of=2),)) == [], "a pod that is not known yet"
        await made.run(pod("web-1", "1", node="a", app="web"))
        assert [t[0] for t in made.report(reservations=(bare("web-0", "web-1", of=2),))] == ["Pod/web-1"]


async def test_a_pod_that_takes_the_name_of_another_is_reported_as_well() -> None:
    async with telling() as made:
        first = pod("web-0", "1", node="a", app="web")
        await made.run(first)
        made.report(reservations=(bare("web-0", of=1),))
        first["metadata"]["uid"] = "another"
        await made.run(first)
        assert [t[0] for t in made.report(reservations=(bare("web-0", of=1),))] == ["Pod/web-0"]


async def test_a_node_speaks_of_its_own_pods_alone() -> None:
    async with telling() as made:
        await made.run(pod("web-0", "1", node="b", app="web"))
        assert made.report(reservations=(bare("web-0", of=1),)) == []


async def test_a_node_hears_of_its_agent() -> None:
    async with telling() as made:
        assert [t[:3] for t in made.report("Unknown")] == [("Node/a", "Warning", "AgentSilent")]
        assert [t[:3] for t in made.report("True")] == [("Node/a", "Normal", "AgentReporting")]
        bad = Condition(type="ControllersHealthy", status="False", reason="Failing", message="x: broken")
        assert made.report(conditions=(bad,)) == [
            ("Node/a", "Warning", "AgentTrouble", "ControllersHealthy is False: x: broken")
        ]
        assert made.report(conditions=(bad,)) == []


async def test_a_pod_hears_of_a_profile_that_it_does_not_get() -> None:
    async with telling() as made:
        made.heard.clear()
        plain, known = pod("plain", "1"), pod("known", "1", **{PROFILE: "be"})
        await made.run(plain, known, pod("odd", "1", **{PROFILE: "gold"}), pod("proud", "1", **{PROFILE: "lsr"}))
        made.narrator.look()
        assert made.heard == [
            ("Pod/odd", "Warning", "ProfileNotTaken", "no QoSProfile is named 'gold'"),
            ("Pod/proud", "Warning", "ProfileNotTaken", "namespace 'shop' may not choose profile 'lsr'"),
        ]
        made.narrator.look()
        assert len(made.heard) == 2
