"""The agent's side of a Kubernetes control plane: what it obeys, what it refuses, what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from j10ce.agent.sync.kube_sync import KINDS, KubeSync
from j10ce.errors import Compacted, NotFound
from j10ce.kube.access import KubeAccess
from j10ce.kube.light import KubeApi, Watched
from j10ce.model.kinds import Condition, Hold, MinimalReservationPolicy, NodeReport, Object, Rollout
from j10ce.model.stored import Event, Listing
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.lifetime import revision_of
from j10ce.policy.profiles import builtin
from j10ce.testing import build

NODE = "n1"
WITHIN_S = 10.0


class FakeApi(KubeApi):
    """An API server in memory; `compact` makes every watcher list again."""

    def __init__(self) -> None:
        super().__init__(KubeAccess("http://127.0.0.1:1", "a test"), dict[str, Watched]())
        self.held: dict[str, list[Object]] = {kind: [] for kind in KINDS}
        self.feeds: dict[str, asyncio.Queue[Event | Compacted]] = {kind: asyncio.Queue() for kind in KINDS}
        self.asked: list[tuple[str, str]] = []
        self.absent = False

    async def list(self, kind: str) -> Listing:
        return Listing(tuple(self.held[kind]), "1")

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        while True:
            event = await self.feeds[kind].get()
            if isinstance(event, Compacted):
                raise event
            yield event

    async def ask(
        self, method: str, path: str, body: object = None, *, content: str = "", within_s: float = 0
    ) -> bytes:
        self.asked.append((method, path.partition("?")[0]))
        if method == "PATCH" and self.absent:
            self.absent = False
            raise NotFound(path)
        return b"{}"

    def delete(self, kind: str, obj: Object) -> None:
        """Before the eyes of whoever watches."""
        self.held[kind].remove(obj)
        self.deleted.add(obj.metadata.uid)
        self.feeds[kind].put_nowait(Event("DELETED", obj, "2"))

    def put(self, obj: Object) -> None:
        """Before the eyes of whoever watches."""
        self.feeds[obj.kind].put_nowait(Event("MODIFIED", obj, "2"))

    def lose(self, *kinds: str) -> None:
        """While nobody looks."""
        for kind in kinds:
            self.held[kind].clear()
            self.feeds[kind].put_nowait(Compacted("gone"))


class FakeNode:
    def __init__(self) -> None:
        self.documents: asyncio.Queue[NodeDocument] = asyncio.Queue()
        self.reports = 0

    async def obey(self, document: NodeDocument) -> None:
        self.documents.put_nowait(document)

    def node_report(self, conditions: tuple[Condition, ...]) -> NodeReport:
        return NodeReport(heartbeat=datetime(2026, 1, 1, tzinfo=UTC))

    def reported(self, report: NodeReport) -> None:
        self.reports += 1

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        return (), frozenset()

    async def next(self) -> NodeDocument:
        async with asyncio.timeout(WITHIN_S):
            return await self.documents.get()


@pytest.fixture
def api() -> FakeApi:
    made = FakeApi()
    gold, floor = build.profile("gold"), build.reservation("db", cpu="1")
    made.held["QoSProfile"] = [replace(gold, metadata=replace(gold.metadata, uid="p-1"))]
    made.held["MinimalReservationPolicy"] = [replace(floor, metadata=replace(floor.metadata, uid="r-1"))]
    return made


@asynccontextmanager
async def synced(api: FakeApi) -> AsyncIterator[tuple[KubeSync, FakeNode]]:
    node = FakeNode()
    sync = KubeSync(api, NODE, node)
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(sync.run())
        yield sync, node
        run.cancel()


async def until(claim: Callable[[], bool]) -> None:
    for _ in range(int(WITHIN_S / 0.01)):
        if claim():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not become true")


def names(document: NodeDocument) -> tuple[list[str], list[str]]:
    return [p.metadata.name for p in document.profiles], [p.metadata.name for p in document.policies]


async def test_what_is_stored_is_rendered_and_obeyed(api: FakeApi) -> None:
    async with synced(api) as (_, node):
        assert names(await node.next()) == (["gold"], ["db"])


async def test_strategies_that_select_the_node_are_among_what_it_obeys(api: FakeApi) -> None:
    elsewhere = build.strategy("elsewhere", {"nodeSelector": {"matchLabels": {"zone": "x"}}})
    api.held["NodeStrategy"] = [build.strategy("here", {"suppress": {"mode": "quota"}}), elsewhere]
    async with synced(api) as (_, node):
        assert [s.metadata.name for s in (await node.next()).strategies] == ["here"]


async def test_without_a_profile_in_store_the_built_in_ones_count(api: FakeApi) -> None:
    api.held["QoSProfile"].clear()
    async with synced(api) as (_, node):
        assert names(await node.next())[0] == sorted(p.metadata.name for p in builtin())


async def test_a_deletion_that_was_watched_is_obeyed_to_the_last_object(api: FakeApi) -> None:
    async with synced(api) as (sync, node):
        await node.next()
        api.delete("MinimalReservationPolicy", api.held["MinimalReservationPolicy"][0])
        assert names(await node.next()) == (["gold"], [])
        api.delete("QoSProfile", api.held["QoSProfile"][0])
        await node.next()
        assert sync.conditions() == ()


def generation(number: int, cpu: str, **how: Rollout) -> MinimalReservationPolicy:
    made = build.reservation("web", cpu=cpu, **how)
    return replace(made, metadata=replace(made.metadata, uid="r-2", generation=number, resource_version=str(number)))


@pytest.mark.parametrize("recorded", [False, True], ids=["nobody leads", "the leader records what was before"])
async def test_a_canary_that_follows_its_policy_at_once_does_not_reach_a_node_that_is_none(
    api: FakeApi, recorded: bool
) -> None:
    """The first generation is in no history when the second comes; the agent has seen it."""
    first, canary = generation(1, "1"), generation(2, "2", rollout=Rollout(canary_percent=0))
    api.held["MinimalReservationPolicy"] = [first]
    async with synced(api) as (_, node):
        assert [p.metadata.generation for p in (await node.next()).policies] == [1]
        api.put(canary)
        if recorded:
            api.put(revision_of(first))
        api.put(build.profile("silver"))
        document = await node.next()
        while "silver" not in names(document)[0]:
            document = await node.next()
    assert [(p.metadata.generation, str(p.spec.minimum.cpu)) for p in document.policies] == [(1, "1")]


async def test_an_api_server_that_is_suddenly_empty_is_not_obeyed(api: FakeApi) -> None:
    async with synced(api) as (sync, node):
        await node.next()
        api.lose("QoSProfile")
        await node.next()  # one kind alone may be empty
        api.lose("MinimalReservationPolicy")
        await until(lambda: bool(sync.conditions()))
        (condition,) = sync.conditions()
        assert (condition.type, condition.status) == ("PoliciesObeyed", "False")
        assert "lost its objects" in sync.error
        assert node.documents.empty()


async def test_one_policy_that_went_unseen_is_gone_while_others_are_there(api: FakeApi) -> None:
    async with synced(api) as (sync, node):
        await node.next()
        api.lose("MinimalReservationPolicy")
        assert names(await node.next()) == (["gold"], [])
        assert sync.conditions() == ()


async def test_a_node_without_an_object_gets_one_with_its_first_report(api: FakeApi) -> None:
    api.absent = True
    async with synced(api) as (_, node):
        await until(lambda: node.reports == 1)
    own = f"/apis/j10ce.io/v1alpha1/nodeqoses/{NODE}/status"
    assert api.asked == [("PATCH", own), ("POST", "/apis/j10ce.io/v1alpha1/nodeqoses"), ("PATCH", own)]
