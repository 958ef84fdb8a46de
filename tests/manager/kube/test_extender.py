"""The extender over HTTP: fed by watches of a store, answered by the leader alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import msgspec
import pytest

from j10ce.errors import Invalid
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.doors import Doors
from j10ce.manager.kube.extender import PREFIX, ExtenderDoor
from j10ce.manager.kube.leader_address import keep_address, slice_of
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kube.native import Namespace, NativeMeta, Node, NodeStatus, decode_native
from j10ce.model.kube.pod import Pod
from j10ce.model.quantity import Quantity
from j10ce.model.stored import Event, Listing
from j10ce.scheduler.extender import offers
from j10ce.scheduler.extender.extender import Extender
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.store.memory import MemoryStore
from tests.scheduler.extender.book import amount, policy


class Cluster:
    """Pods, nodes and namespaces of an API server."""

    def __init__(self) -> None:
        has = {"cpu": Quantity(4), "memory": Quantity(16 << 30)}
        self.held: dict[str, list[Any]] = {
            "Node": [Node(metadata=NativeMeta(name=name), status=NodeStatus(allocatable=has)) for name in "ab"],
            "Namespace": [Namespace(metadata=NativeMeta(name="shop"))],
            "Pod": [],
        }
        self.events: asyncio.Queue[Event] = asyncio.Queue()

    async def list(self, kind: str) -> Listing:
        return Listing(tuple(self.held[kind]), "1")

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        while kind == "Pod":
            yield await self.events.get()
        await asyncio.Event().wait()

    def tell(self, pod: dict[str, Any], kind: Any = "MODIFIED") -> None:
        self.events.put_nowait(Event(kind, decode_native(msgspec.json.encode(pod), Pod), "2"))  # type: ignore[arg-type]


class Rig:
    def __init__(self, occupants: Occupants, extender: Extender, cluster: Cluster, *, leads: bool) -> None:
        self.occupants, self.cluster = occupants, cluster
        self.occupancy, self.offers = extender.occupancy, extender.offers
        loop, self.metrics = asyncio.get_running_loop(), Metrics()
        self.seen = DoorMetrics(self.metrics.registry)
        door = ExtenderDoor(occupants, extender, lambda: leads, loop.time, self.seen)
        self._app = Doors(nothing, {PREFIX: door}, self.seen.answered, time.monotonic)  # type: ignore[arg-type]

    async def ask(self, verb: str, body: Any, client: str = "127.0.0.1") -> httpx.Response:
        transport = httpx.ASGITransport(self._app, client=(client, 1))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            return await http.post(f"/extender/{verb}", content=msgspec.json.encode(body))

    async def filter(self, pod: dict[str, Any]) -> Any:
        """Of a pod that the API server has sent, as of every one that a scheduler asks about."""
        self.cluster.tell(pod)
        return await self.describe(pod)

    async def describe(self, pod: dict[str, Any]) -> Any:
        """Of whatever the caller says."""
        return (await self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]})).json()


async def nothing(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no other path is asked for")


@asynccontextmanager
async def rig(*, leads: bool = True) -> AsyncIterator[Rig]:
    store, cluster = MemoryStore(lambda: 0.0), Cluster()
    view = View(store)
    extender = Extender(Occupancy(), Offers())
    occupants = Occupants(cluster, view, lambda: 0.0, extender.occupancy, extender.offers)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(view.run()), group.create_task(occupants.run())]
            await view.ready()
            await occupants.ready()
            extender.occupancy.put_pledge(policy("web", amount(2, 4), {"a": 1}))
            yield Rig(occupants, extender, cluster, leads=leads)
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
        verdict = await made.filter(pod("batch", "3"))
        why = {"a": "cpu 2 reserved by MinimalReservationPolicy/shop/web"}
        assert verdict == {
            "Nodes": None,
            "NodeNames": ["b"],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": why,
            "Error": "",
        }
        old = await made.ask("filter-v1beta1", {"Pod": pod("batch", "3"), "NodeNames": ["a", "b"]})
        assert old.json() == {**verdict, "FailedNodes": why}, "for schedulers that know the first one alone"


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
            body = (await made.ask("prioritize", {"Pod": who, "NodeNames": names})).json()
            return {(row["Host"], row["Score"]) for row in body}

        small, holder = pod("small", "100m"), pod("web-0", "2", app="web")
        left = (await made.filter(small))["NodeNames"]
        gone_on, beside = await scores(small, left), await scores(holder, left)
        assert gone_on == await scores(small, left[::-1]), "in another order it is another question"
        assert beside == await scores(holder, left[::-1]), "and so it is for another pod"
        assert (*gone_on, *beside) == (("b", 3), ("a", 6))


async def test_a_pod_waits_for_a_binding_under_way() -> None:
    async with rig() as made:
        made.occupancy.put_pledge(policy("db", amount(2, 4), {"b": 1}))
        assert (await made.filter(pod("one", "2")))["NodeNames"] == ["a", "b"]
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(made.filter(pod("two", "2")))
            await asyncio.sleep(0)
            made.cluster.tell(pod("one", "2", node="a"))
        assert waiting.result()["NodeNames"] == ["b"]


async def test_nothing_is_held_for_a_pod_that_has_ended() -> None:
    async with rig() as made:
        epoch = made.occupants.heard.epoch
        made.cluster.tell(pod("late", "2"), "DELETED")
        await made.occupants.heard.moved(epoch)
        await made.describe(pod("late", "2"))
        assert len(made.offers) == 0


async def test_a_mistake_is_reported_in_the_answer() -> None:
    async with rig() as made:
        body = (await made.ask("filter", {"Pod": {}, "Nodes": {"items": []}})).json()
        assert "nodeCacheCapable" in body["Error"]
        assert (await made.ask("preempt", {"Pod": 3})).status_code == 422
        assert (await made.ask("elsewhere", {})).status_code == 404


async def test_a_follower_does_not_answer() -> None:
    async with rig(leads=False) as made:
        answer = await made.ask("filter", {"Pod": pod("p", "1"), "NodeNames": ["a"]})
        assert answer.status_code == 503
        assert "another manager leads" in answer.text


async def test_a_stranger_on_the_network_hears_nothing() -> None:
    body = {"Pod": pod("p", "1"), "NodeNames": ["a"]}
    async with rig() as made:
        made.cluster.tell(pod("p", "1"))
        for verb in ("filter", "filter-v1beta1", "prioritize", "preempt"):
            refused = await made.ask(verb, body, client="10.0.0.9")
            assert refused.status_code == 403
            assert "client.crt" in refused.text
        assert (await made.ask("filter", body)).status_code == 200
        assert (await made.ask("bind", {})).status_code == 404, "bindings are the scheduler's own business"


async def test_an_invented_pod_takes_no_unit_from_the_real_one() -> None:
    async with rig() as made:
        assert (await made.describe(pod("invented", "2", app="web")))["NodeNames"] == ["a"]
        assert len(made.offers) == 0
        assert (await made.filter(pod("web-0", "2", app="web")))["NodeNames"] == ["a"]


async def test_nobody_takes_back_what_another_pod_was_offered() -> None:
    async with rig() as made:
        await made.filter(pod("web-0", "2", app="web"))
        thief = pod("thief", "1")
        thief["metadata"]["uid"] = "uid-web-0"
        await made.describe(thief)
        await made.ask("preempt", {"Pod": thief, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "x"}]}}})
        assert len(made.offers) == 1


async def test_a_pod_is_charged_what_the_api_server_says_that_it_requests() -> None:
    async with rig() as made:
        made.cluster.tell(pod("small", "100m"))
        described = await made.describe(pod("small", "3"))
        assert described["NodeNames"] == ["a", "b"]
        assert made.offers.charged(2)[:, 0].tolist() == [100, 100]


async def test_a_pod_that_the_scheduler_heard_of_first_is_waited_for() -> None:
    async with rig() as made:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(made.describe(pod("early", "1")))
            await asyncio.sleep(0)
            made.cluster.tell(pod("early", "1"))
        assert waiting.result()["NodeNames"] == ["a", "b"]
        assert len(made.offers) == 1


async def test_offers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "MOST", 3)
    async with rig() as made:
        for n in range(5):
            await made.filter(pod(f"p{n}", "100m"))
        book = made.offers
        assert len(book) == 3
        assert book.charged(2)[:, 0].tolist() == [300, 300]


@pytest.mark.parametrize(
    ("address", "ip"), [("10.1.2.3:9443", "10.1.2.3"), ("[fd00::1]:9443", "fd00::1"), ("fd00::1:9443", "fd00::1")]
)
def test_the_leader_tells_where_it_is(address: str, ip: str) -> None:
    endpoints = slice_of(address)
    assert endpoints["kind"] == "EndpointSlice"
    assert endpoints["metadata"]["labels"]["kubernetes.io/service-name"] == "j10ce-extender"
    assert endpoints["addressType"] == ("IPv6" if ":" in ip else "IPv4")
    assert [point["addresses"] for point in endpoints["endpoints"]] == [[ip]]
    assert endpoints["ports"] == [{"name": "https", "port": 9443, "protocol": "TCP"}]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_the_leader_writes_what_the_api_server_serves(version: str) -> None:
    written: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    class Server:
        async def get(self, path: str) -> bytes:
            assert path == "/apis/discovery.k8s.io"
            return msgspec.json.encode({"preferredVersion": {"groupVersion": f"discovery.k8s.io/{version}"}})

        async def patch(self, path: str, body: Any, how: str, *, force: bool) -> bytes:
            assert (how, force) == ("apply", True)
            await written.put((path, body))
            return b""

    async with asyncio.TaskGroup() as group:
        task = group.create_task(keep_address(Server(), "j10ce-system", "10.1.2.3:9443"))
        path, body = await written.get()
        task.cancel()
    assert path == f"/apis/discovery.k8s.io/{version}/namespaces/j10ce-system/endpointslices/j10ce-extender"
    assert body["apiVersion"] == f"discovery.k8s.io/{version}"


@pytest.mark.parametrize("address", ["", "here:1", "10.1.2.3", "10.1.2.3:x"])
def test_an_address_is_an_address(address: str) -> None:
    with pytest.raises(Invalid, match="--advertise"):
        slice_of(address)


async def test_what_schedulers_get_is_counted() -> None:
    async with rig() as r:
        await r.filter(pod("web-0", "2", app="web"))
        await r.filter(pod("batch", "3"))
        await r.describe({"metadata": {}, "spec": 7})
        await r.ask("filter", {"Pod": pod("x", "1"), "Nodes": {"items": []}})
        await r.ask("no/such/verb", {})
        text = bytes(r.metrics.render().body).decode()
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
        assert f"\n{line}\n" in text, text
    assert r.offers
    assert f"\nj10ce_manager_extender_offers {len(r.offers):.1f}\n" in text
