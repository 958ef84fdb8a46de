"""The leader carries out what agents ask for: of their own pods, within budgets, as long as they want it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from j10ce.errors import Later, NotFound, QosError
from j10ce.kube.events import Subject
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.evictions.evictor import Evictor
from j10ce.manager.kube.evictions.queue import FIRST_S
from j10ce.model.kinds import EvictionRequest, Meta, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.model.stored import Happening, Key
from j10ce.policy.choose import Chooser
from j10ce.policy.profiles import builtin
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import strategy
from tests.manager.kube.test_extender import Cluster, pod

PROFILE = "j10ce.io/qos-profile"


class ApiServer:
    """Takes evictions, or answers with what it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.answer: QosError | None = None

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        self.asked.append((namespace, name, uid))
        if self.answer:
            raise self.answer


class Rig:
    def __init__(self, store: MemoryStore, view: View, occupants: Occupants, cluster: Cluster) -> None:
        self._store, self._view, self._occupants, self._cluster = store, view, occupants, cluster
        self.now, self.api = 1000.0, ApiServer()
        self.events: list[tuple[str, str, str]] = []
        self._evictor = Evictor(self.api, view, occupants, lambda: self.now, self._tell)  # type: ignore[arg-type]

    def _tell(self, about: Subject, what: Happening) -> None:
        self.events.append((f"{about.kind}/{about.name}", what.reason, what.message))

    async def run(self, *pods: dict[str, Any]) -> None:
        for each in pods:
            epoch = self._occupants.heard.epoch
            self._cluster.tell(each, "ADDED")
            await self._occupants.heard.moved(epoch)

    async def report(self, *names: str, node: str = "a", uid: str = "", silent_s: float = 0.0) -> None:
        asked = tuple(
            EvictionRequest(namespace="shop", name=n, uid=uid or f"uid-{n}", why="memory 96 % in use") for n in names
        )
        beat = datetime.fromtimestamp(self.now - silent_s, UTC)
        said = NodeQoS(metadata=Meta(name=node), status=NodeQoSStatus(node=NodeReport(heartbeat=beat, evictions=asked)))
        known = await self._store.get("NodeQoS", "", node)
        stored = await self._store.put(said, expect=known.metadata.resource_version, part="status")
        while self._view.mirrors["NodeQoS"].held[Key("NodeQoS", "", node)] != stored:
            await self._view.objects.moved(self._view.objects.epoch)

    async def look(self, after_s: float = 0.0) -> list[str]:
        """The pods whose eviction is asked for at this look."""
        self.now += after_s
        before = len(self.api.asked)
        await self._evictor.look()
        return [name for _, name, _ in self.api.asked[before:]]


@asynccontextmanager
async def evicting(mode: str = "enforce") -> AsyncIterator[Rig]:
    store, cluster = MemoryStore(lambda: 0.0), Cluster()
    await store.put(NodeQoS(metadata=Meta(name="a")))
    await store.put(strategy("everywhere", {"eviction": {"mode": mode, "perMinute": 2}}))
    view = View(store)
    occupants = Occupants(cluster, view, lambda: 0.0, Occupancy(), Offers())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(view.run()), group.create_task(occupants.run())]
        await view.ready()
        await occupants.ready()
        occupants._chooser = Chooser(builtin())  # else it knows them a moment after they are read
        yield Rig(store, view, occupants, cluster)
        for task in tasks:
            task.cancel()
    await store.close()


async def test_what_an_agent_asks_for_is_evicted_once_and_the_pod_hears_why() -> None:
    async with evicting() as made:
        await made.run(pod("web-0", "1", node="a"))
        await made.report("web-0")
        assert await made.look() == ["web-0"]
        assert made.api.asked == [("shop", "web-0", "uid-web-0")]
        assert made.events == [("Pod/web-0", "EvictedForQoS", "a: memory 96 % in use")]
        assert await made.look(1.0) == []


async def test_a_budget_is_heeded_told_once_and_tried_again_until_it_is_withdrawn() -> None:
    async with evicting() as made:
        await made.run(pod("web-0", "1", node="a"))
        await made.report("web-0")
        made.api.answer = Later("it would violate the pod's disruption budget", 1.0)
        assert await made.look() == ["web-0"]
        assert await made.look(FIRST_S) == ["web-0"]
        assert await made.look(FIRST_S) == [], "twice as long each time"
        assert [reason for _, reason, _ in made.events] == ["EvictionPending"]
        await made.report()
        assert await made.look(1000.0) == []


async def test_a_minute_has_so_many() -> None:
    async with evicting() as made:
        await made.run(*(pod(f"web-{n}", "1", node="a") for n in range(3)))
        await made.report("web-0", "web-1", "web-2")
        assert await made.look() == ["web-0", "web-1"]
        await made.report("web-2")
        assert await made.look(30.0) == []
        await made.report("web-2")
        assert await made.look(30.0) == ["web-2"]


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        pytest.param(pod("web-0", "1", node="b"), {}, id="a pod of another node"),
        pytest.param(pod("web-0", "1", node="a"), {"uid": "another"}, id="another pod of that name"),
        pytest.param(pod("web-0", "1", node="a", **{PROFILE: "system"}), {}, id="tier system"),
        pytest.param(pod("other", "1", node="a"), {}, id="nobody of that name"),
        pytest.param(pod("web-0", "1", node="a"), {"silent_s": 120.0}, id="a node that is silent"),
    ],
)
async def test_not_obeyed(given: dict[str, Any], fields: dict[str, Any]) -> None:
    async with evicting() as made:
        if PROFILE in given["metadata"]["labels"]:
            made._occupants.known_namespace = lambda name: {"j10ce.io/trusted": "true"}  # type: ignore[method-assign]
        await made.run(given)
        await made.report("web-0", **fields)
        assert await made.look() == []


async def test_a_pod_that_is_ending_is_not_asked_again() -> None:
    async with evicting() as made:
        ending = pod("web-0", "1", node="a")
        ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        await made.run(ending)
        await made.report("web-0")
        assert await made.look() == []


async def test_while_the_strategy_only_proposes_nobody_is_evicted() -> None:
    async with evicting("propose") as made:
        await made.run(pod("web-0", "1", node="a"))
        await made.report("web-0")
        assert await made.look() == []


async def test_one_that_is_gone_meanwhile_is_nobodys_trouble() -> None:
    async with evicting() as made:
        await made.run(pod("web-0", "1", node="a"))
        await made.report("web-0")
        made.api.answer = NotFound("pods web-0 not found")
        assert await made.look() == ["web-0"]
        assert made.events == []
