"""The extender over HTTP: fed by watches of a store, answered by the leader alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import msgspec
import pytest

from j10ce.errors import Invalid, NotFound
from j10ce.manager.door_metrics import DoorMetrics
from j10ce.manager.doors import Doors
from j10ce.manager.extender import PREFIX, ExtenderDoor
from j10ce.manager.leader_address import endpoints
from j10ce.manager.metrics import Metrics
from j10ce.manager.occupants import Occupants
from j10ce.manager.view import View
from j10ce.model.native import Namespace, NativeMeta, Node, NodeStatus, decode_native
from j10ce.model.pod import Pod
from j10ce.model.quantity import Quantity
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Event, Listing
from tests.extender.book import amount, policy


class Cluster:
    """Pods, nodes and namespaces of an API server."""

    def __init__(self) -> None:
        has = {"cpu": Quantity(4), "memory": Quantity(16 << 30)}
        self.held: dict[str, list[Any]] = {
            "Node": [Node(metadata=NativeMeta(name=name), status=NodeStatus(allocatable=has)) for name in "ab"],
            "Namespace": [Namespace(metadata=NativeMeta(name="shop"))],
            "Pod": [],
        }
        self.told: asyncio.Queue[Event] = asyncio.Queue()

    async def list(self, kind: str) -> Listing:
        return Listing(tuple(self.held[kind]), "1")

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        while kind == "Pod":
            yield await self.told.get()
        await asyncio.Event().wait()

    def tell(self, pod: dict[str, Any], kind: Any = "MODIFIED") -> None:
        self.told.put_nowait(Event(kind, decode_native(msgspec.json.encode(pod), Pod), "2"))  # type: ignore[arg-type]


class Api:
    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []

    async def create(self, path: str, body: object) -> bytes:
        if "gone" in path:
            raise NotFound("pods gone")
        self.made.append((path, body))
        return b"{}"


class Rig:
    def __init__(self, occupants: Occupants, cluster: Cluster, api: Api, *, leads: bool, certified: bool) -> None:
        self.occupants, self.cluster, self.api = occupants, cluster, api
        loop, self.told = asyncio.get_running_loop(), Metrics()
        self.seen = DoorMetrics(self.told.registry)
        door = ExtenderDoor(occupants, lambda: leads, loop.time, self.seen, binder=api, certified=certified)
        self._app = Doors(nothing, {PREFIX: door}, self.seen.answered)  # type: ignore[arg-type]

    async def ask(self, verb: str, body: Any, client: str = "127.0.0.1") -> httpx.Response:
        transport = httpx.ASGITransport(self._app, client=(client, 1))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            return await http.post(f"/extender/{verb}", content=msgspec.json.encode(body))

    async def filter(self, pod: dict[str, Any]) -> Any:
        return (await self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]})).json()


async def nothing(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no other path is asked for")


@asynccontextmanager
async def rig(*, leads: bool = True, certified: bool = False) -> AsyncIterator[Rig]:
    store, cluster = MemoryStore(lambda: 0.0), Cluster()
    view = View(store)
    occupants = Occupants(cluster, view, lambda: 0.0)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(view.run()), group.create_task(occupants.run())]
            await view.ready()
            await occupants.ready()
            occupants.extender.occupancy.put_stake(policy("web", amount(2, 4), {"a": 1}))
            yield Rig(occupants, cluster, Api(), leads=leads, certified=certified)
            for task in tasks:
                task.cancel()
    finally:
        await store.close()


def pod(name: str, cpu: str, node: str = "", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": labels}
    resources = {"requests": {"cpu": cpu}}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "c", "resources": resources}]}}


async def test_a_filter_by_gos_names() -> None:
    async with rig() as made:
        told = await made.filter(pod("batch", "3"))
        why = {"a": "cpu 2 reserved by MinimalReservationPolicy/shop/web"}
        assert told == {
            "Nodes": None,
            "NodeNames": ["b"],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": why,
            "Error": "",
        }
        old = await made.ask("filter-v1beta1", {"Pod": pod("batch", "3"), "NodeNames": ["a", "b"]})
        assert old.json() == {**told, "FailedNodes": why}, "for schedulers that know the first one alone"


async def test_scores_and_victims() -> None:
    async with rig() as made:
        body = {"Pod": pod("web-0", "2", app="web"), "NodeNames": ["a", "b"]}
        scores = {row["Host"]: row["Score"] for row in (await made.ask("prioritize", body)).json()}
        assert list(scores) == ["a"]
        assert 0 < scores["a"] <= 10
        victims = {name: {"Pods": [{"UID": "x"}], "NumPDBViolations": 0} for name in "ab"}
        asked = {"Pod": pod("batch", "3"), "NodeNameToMetaVictims": victims}
        assert (await made.ask("preempt", asked)).json() == {"NodeNameToMetaVictims": {"b": victims["b"]}}


async def test_a_question_that_goes_on_from_filter_is_answered_like_any_other() -> None:
    async with rig() as made:

        async def scores(who: dict[str, Any], names: list[str]) -> set[tuple[str, int]]:
            told = (await made.ask("prioritize", {"Pod": who, "NodeNames": names})).json()
            return {(row["Host"], row["Score"]) for row in told}

        small, holder = pod("small", "100m"), pod("web-0", "2", app="web")
        left = (await made.filter(small))["NodeNames"]
        gone_on, beside = await scores(small, left), await scores(holder, left)
        assert gone_on == await scores(small, left[::-1]), "in another order it is another question"
        assert beside == await scores(holder, left[::-1]), "and so it is for another pod"
        assert (*gone_on, *beside) == (("b", 3), ("a", 6))


async def test_a_pod_waits_for_a_binding_under_way() -> None:
    async with rig() as made:
        made.occupants.extender.occupancy.put_stake(policy("db", amount(2, 4), {"b": 1}))
        assert (await made.filter(pod("one", "2")))["NodeNames"] == ["a", "b"]
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(made.filter(pod("two", "2")))
            await asyncio.sleep(0)
            made.cluster.tell(pod("one", "2", node="a"))
        assert waiting.result()["NodeNames"] == ["b"]


async def test_nothing_is_held_for_a_pod_that_has_ended() -> None:
    async with rig() as made:
        epoch = made.occupants.bound.epoch
        made.cluster.tell(pod("late", "2"), "DELETED")
        await made.occupants.bound.moved(epoch)
        await made.filter(pod("late", "2"))
        assert len(made.occupants.extender.offers) == 0


async def test_a_mistake_is_told_in_the_answer() -> None:
    async with rig() as made:
        told = (await made.ask("filter", {"Pod": {}, "Nodes": {"items": []}})).json()
        assert "nodeCacheCapable" in told["Error"]
        assert (await made.ask("preempt", {"Pod": 3})).status_code == 422
        assert (await made.ask("elsewhere", {})).status_code == 404


async def test_a_follower_does_not_answer() -> None:
    async with rig(leads=False) as made:
        answer = await made.ask("filter", {"Pod": pod("p", "1"), "NodeNames": ["a"]})
        assert answer.status_code == 503
        assert "another manager leads" in answer.text


async def test_with_a_client_ca_strangers_are_kept_out() -> None:
    body = {"Pod": pod("p", "1"), "NodeNames": ["a"]}
    async with rig(certified=True) as made:
        assert (await made.ask("filter", body, client="10.0.0.9")).status_code == 403
        assert (await made.ask("filter", body)).status_code == 200
    async with rig() as made:
        assert (await made.ask("filter", body, client="10.0.0.9")).status_code == 200


async def test_a_binding_is_made_for_whom_we_know_alone() -> None:
    body = {"PodName": "web-0", "PodNamespace": "shop", "PodUID": "u", "Node": "a"}
    async with rig() as made:
        assert (await made.ask("bind", body, client="10.0.0.9")).status_code == 403
        assert (await made.ask("bind", body)).json() == {"Error": ""}
        (path, binding) = made.api.made[0]
        assert path == "/api/v1/namespaces/shop/pods/web-0/binding"
        assert binding["target"]["name"] == "a"
        assert (await made.ask("bind", {**body, "PodName": "gone"})).json() == {"Error": "pods gone"}


@pytest.mark.parametrize(
    ("address", "ip"), [("10.1.2.3:9443", "10.1.2.3"), ("[fd00::1]:9443", "fd00::1"), ("fd00::1:9443", "fd00::1")]
)
def test_the_leader_tells_where_it_is(address: str, ip: str) -> None:
    (subset,) = endpoints(address)["subsets"]
    assert subset == {"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": 9443, "protocol": "TCP"}]}


@pytest.mark.parametrize("address", ["", "here:1", "10.1.2.3", "10.1.2.3:x"])
def test_an_address_is_an_address(address: str) -> None:
    with pytest.raises(Invalid, match="--advertise"):
        endpoints(address)


async def test_what_schedulers_are_told_is_counted() -> None:
    async with rig() as r:
        await r.filter(pod("web-0", "2", app="web"))
        await r.filter(pod("batch", "3"))
        await r.filter({"metadata": {}, "spec": 7})
        await r.ask("filter", {"Pod": pod("x", "1"), "Nodes": {"items": []}})
        await r.ask("no/such/verb", {})
        told = bytes(r.told.render().body).decode()
    for line in (
        'j10ce_manager_door_requests_total{code="200",door="extender",verb="filter"} 4.0',
        'j10ce_manager_door_requests_total{code="404",door="extender",verb="other"} 1.0',
        'j10ce_manager_door_seconds_count{door="extender",verb="filter"} 4.0',
        'j10ce_manager_extender_pods_total{verdict="seated"} 1.0',
        'j10ce_manager_extender_pods_total{verdict="offered"} 1.0',
        'j10ce_manager_extender_pods_total{verdict="malformed"} 2.0',
        'j10ce_manager_extender_nodes_refused_total{reason="elsewhere"} 1.0',
        'j10ce_manager_extender_nodes_refused_total{reason="hopeless"} 1.0',
    ):
        assert f"\n{line}\n" in told, told
    assert r.occupants.extender.offers
    assert f"\nj10ce_manager_extender_offers {len(r.occupants.extender.offers):.1f}\n" in told
