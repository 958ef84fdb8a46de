"""The keeper of NodeStrategies on a store in memory: what it writes, what it says, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from j10ce.errors import Invalid
from j10ce.kube.client import KubeClient
from j10ce.kube.events import Subject
from j10ce.manager.documents.view import View
from j10ce.manager.kube.koordinator.follow import Following
from j10ce.manager.kube.koordinator.strategies import ConfigMapName, StrategyKeeper, following
from j10ce.model.kinds import Meta, NodeStrategy
from j10ce.model.kube.native import NativeMeta, Node
from j10ce.model.stored import Happening
from j10ce.store.memory import MemoryStore

WHERE = ConfigMapName("koordinator-system", "slo-controller-config")
AUTO = json.dumps({"clusterStrategy": {"policy": "auto"}})
NONE = json.dumps({"clusterStrategy": {"policy": "none"}})


async def followed(view: View, claim: Callable[[], object]) -> None:
    """Returns once the view has heard what makes it true."""
    async with asyncio.timeout(60):
        while not claim():
            await view.objects.moved(view.objects.epoch)


class Rig:
    def __init__(self, store: MemoryStore, view: View, follows: Following) -> None:
        self.store, self.view, self.follows = store, view, follows
        self.said: list[tuple[str, str]] = []
        self.nodes: list[Node] = []
        self.keeper = StrategyKeeper(store, view, lambda: self.nodes, follows, WHERE, self._tell)

    def _tell(self, about: Subject, what: Happening) -> None:
        assert (about.kind, about.namespace, about.name) == ("ConfigMap", *WHERE)
        self.said.append((what.reason, what.message))

    async def write(self, data: dict[str, str] | None) -> dict[str, NodeStrategy]:
        """The ConfigMap as it is from now on; the objects once the keeper has looked, and its view has followed."""
        raw = {"metadata": {"name": WHERE.name, "uid": "u"}, "data": data}
        self.follows.held = {} if data is None else {WHERE.name: raw}
        await self.keeper.look()
        stored = {s.metadata.name: s for s in (await self.store.list("NodeStrategy")).items}
        held = self.view.mirrors["NodeStrategy"].held
        await followed(self.view, lambda: {k.name: v for k, v in held.items()} == stored)
        return {name: s for name, s in stored.items() if isinstance(s, NodeStrategy)}


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    store = MemoryStore(lambda: 0.0)
    view = View(store)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(view.run())
        await view.ready()
        nobody: Any = None
        yield Rig(store, view, Following(nobody, ""))
        task.cancel()


async def test_objects_follow_the_configmap() -> None:
    async with rig() as r:
        first = await r.write({"cpu-burst-config": AUTO})
        assert first["koordinator-cpu-burst-cluster"].spec.burst.policy == "auto"
        assert r.said == [("Accepted", "1 NodeStrategies say what it says")]
        second = await r.write({"cpu-burst-config": NONE})
        assert second["koordinator-cpu-burst-cluster"].spec.burst.policy == "none"
        assert await r.write({}) == {}


async def test_nothing_is_written_or_said_again_while_nothing_changes() -> None:
    async with rig() as r:
        before = await r.write({"cpu-burst-config": AUTO})
        said = len(r.said)
        assert await r.write({"cpu-burst-config": AUTO}) == before
        assert len(r.said) == said


async def test_a_key_that_breaks_keeps_its_objects_also_for_the_next_leader() -> None:
    async with rig() as r:
        good = await r.write({"cpu-burst-config": AUTO, "system-config": '{"clusterStrategy": {}}'})
        broken = {"cpu-burst-config": "{", "system-config": '{"clusterStrategy": {"watermarkScaleFactor": 20}}'}
        kept = await r.write(broken)
        assert kept["koordinator-cpu-burst-cluster"].spec == good["koordinator-cpu-burst-cluster"].spec
        assert "koordinator-system-cluster" in kept, "the other keys count"
        assert [reason for reason, _ in r.said] == ["Accepted", "Refused"]
        r.keeper = StrategyKeeper(r.store, r.view, lambda: r.nodes, r.follows, WHERE, r._tell)
        assert await r.write(broken) == kept


async def test_a_configmap_that_is_deleted_leaves_the_last_good_value_and_is_said() -> None:
    async with rig() as r:
        good = await r.write({"cpu-burst-config": AUTO})
        kept = await r.write(None)
        assert [s.spec for s in kept.values()] == [s.spec for s in good.values()]
        assert r.said[-1][0] == "ConfigMapDeleted"
        assert all("was deleted" in s.metadata.annotations["j10ce.io/dialect-findings"] for s in kept.values())


async def test_without_a_configmap_and_without_a_past_nothing_is_there() -> None:
    async with rig() as r:
        assert await r.write(None) == {}
        assert r.said == []


async def test_what_somebody_deleted_or_edited_is_put_back() -> None:
    async with rig() as r:
        whole = await r.write({"cpu-burst-config": AUTO})
        await r.store.delete("NodeStrategy", "", "koordinator-cpu-burst-cluster")
        await followed(r.view, lambda: not r.view.all(NodeStrategy))
        back = await r.write({"cpu-burst-config": AUTO})
        assert [s.spec for s in back.values()] == [s.spec for s in whole.values()]


async def test_a_node_that_speaks_for_itself_gets_an_object_until_it_is_silent() -> None:
    async with rig() as r:
        labels = {"node.koordinator.sh/cpu-reclaim-ratio": "0.8"}
        r.nodes = [Node(metadata=NativeMeta(name="n1", labels=labels)), Node(metadata=NativeMeta(name="n2"))]
        config = {"colocation-config": '{"enable": true}'}
        assert len(await r.write(config)) == 2
        r.nodes = r.nodes[1:]
        assert [*await r.write(config)] == ["koordinator-colocation-cluster"]


async def test_cpus_of_system_follow_the_node_with_and_without_a_configmap() -> None:
    async with rig() as r:
        said = {"node.koordinator.sh/system-qos-resource": '{"cpuset": "0-1"}'}
        r.nodes = [Node(metadata=NativeMeta(name="n1", annotations=said))]
        (alone,) = (await r.write(None)).values()
        assert alone.spec.system_cpus.cpus == "0-1"
        assert len(await r.write({"cpu-burst-config": AUTO})) == 2
        r.nodes = []
        assert [*await r.write(None)] == ["koordinator-cpu-burst-cluster"], "the annotation is gone, the key stays"


async def test_what_nodes_get_wrong_does_not_hide_what_is_wrong_with_the_configmap() -> None:
    async with rig() as r:
        wrong = {"node.koordinator.sh/colocation-strategy": "{"}
        r.nodes = [Node(metadata=NativeMeta(name=f"n{n}", annotations=wrong)) for n in range(20)]
        await r.write({"colocation-config": '{"enable": true}', "system-config": "{"})
        assert "system-config" in r.said[0][1]
        assert {message.split(":")[0] for _, message in r.said[-2:]} < {f"node n{n}" for n in range(20)}


async def test_an_object_of_that_name_that_is_somebody_elses_is_left_alone() -> None:
    async with rig() as r:
        theirs = await r.store.put(NodeStrategy(metadata=Meta(name="koordinator-cpu-burst-cluster")))
        await followed(r.view, lambda: r.view.all(NodeStrategy))
        assert [*(await r.write({"cpu-burst-config": AUTO})).values()] == [theirs]


async def test_an_object_that_the_api_server_refuses_does_not_keep_others_back() -> None:
    class Picky(MemoryStore):
        async def put(self, obj: Any, **how: Any) -> Any:
            if obj.metadata.name == "koordinator-cpu-burst-cluster":
                raise Invalid([], "NodeStrategy")
            return await super().put(obj, **how)

    async with rig() as r:
        r.keeper._store = Picky(lambda: 0.0)
        data = {"cpu-burst-config": AUTO, "system-config": '{"clusterStrategy": {"watermarkScaleFactor": 20}}'}
        await r.write(data)
        assert (await r.keeper._store.get("NodeStrategy", "", "koordinator-system-cluster")).metadata.name
        assert ("StrategyRefused" in {reason for reason, _ in r.said}) is True


def test_the_client_is_asked_for_one_configmap_alone() -> None:
    client: KubeClient = None  # type: ignore[assignment]
    follows = following(client, WHERE)
    assert follows._path == "/api/v1/namespaces/koordinator-system/configmaps"
    assert follows._query == {"fieldSelector": "metadata.name=slo-controller-config"}
