"""POST placements on real managers over one store, with a leader that admits what fits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.tokens import Keyring
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.rest import ResourceRoutes
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.app import build_app
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kinds import Condition, MinimalReservationPolicy, NodeQoS, ReservationReport, Witness
from j10ce.model.resource import NOTHING
from j10ce.model.schema import plain
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.validation.validate import validate
from j10ce.scheduler.cluster import node_of
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from tests.scheduler.place.fleet import fleet, node, witnessed, workload

TOKEN = "sesame"
BASE = "/apis/j10ce.io/v1alpha1"
KIND = "MinimalReservationPolicy"


class Clock:
    def __init__(self) -> None:
        self.now = WALL

    def __call__(self) -> float:
        return self.now


async def lead(store: Store, wall: Callable[[], float]) -> None:
    """Admits one policy after the other, as long as its node has room next to all that are admitted."""
    while True:
        listing = await store.list(KIND)
        nodes = [n for n in (await store.list("NodeQoS")).items if isinstance(n, NodeQoS)]
        policies = [p for p in listing.items if isinstance(p, MinimalReservationPolicy)]
        undecided = [p for p in policies if not p.status.conditions and p.spec.units and node_of(p)]
        for policy in undecided[:1]:
            book = fleet(*nodes, policies=tuple(p for p in policies if p.status.conditions), wall=wall())
            n = book.names.index(node_of(policy))
            free = book.free[n].tolist()
            fits = all(want <= has for want, has in zip(amounts(policy.spec.minimum, NOTHING), free, strict=True))
            status = replace(policy.status, conditions=(verdict(policy, fits),))
            if fits:
                there = (Witness(node=node_of(policy), units=1),)
                status = replace(status, witness=there, admitted_generation=policy.metadata.generation)
            try:
                await store.put(replace(policy, status=status), expect=policy.metadata.resource_version, part="status")
            except (Conflict, NotFound):
                continue
        if not undecided:
            await anext(store.watch(KIND, listing.revision))


def verdict(policy: MinimalReservationPolicy, fits: bool) -> Condition:
    generation, message = policy.metadata.generation, "" if fits else "no room left"
    status: Any = "True" if fits else "False"
    return Condition(type="Admitted", status=status, message=message, observed_generation=generation)


@asynccontextmanager
async def manager(scene: Scene, decide_s: float = 30.0) -> AsyncIterator[httpx.AsyncClient]:
    store, wall = scene.store, scene.clock
    view, keyring = View(store, wall), Keyring(store, wall, owner=TOKEN)
    resources = ResourceRoutes(Verbs(store, validate, wall, {}), view, AgentProxy(None), asyncio.Event())
    access = Access(keyring, Limits(time.monotonic), loopback=True)
    beside = Placements(store, view, wall, decide_s).routes()
    app = build_app(access, resources, view, Metrics(), Audit(None, wall), beside)
    headers = {"authorization": f"Bearer {TOKEN}", "host": "127.0.0.1:7443"}
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(view.run()), group.create_task(keyring.follow())]
        await view.ready()
        await keyring.synced.wait()
        scene.views.append(view)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            yield client
        for task in running:
            task.cancel()


class Scene:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.views: list[View] = []

    async def add(self, *objects: NodeQoS | MinimalReservationPolicy) -> None:
        """Returns once every manager knows."""
        for obj in objects:
            await self.store.put(obj)
            made = await self.store.put(obj, part="status")
            for view in self.views:
                while made not in view.all(type(obj)):
                    await view.objects.moved(view.objects.epoch)

    def wait(self, seconds: int) -> None:
        """Without a pause: managers look at their clocks all the time."""
        for _ in range(seconds):
            self.clock.now += 1
            for view in self.views:
                view.silence.tick()

    async def policies(self) -> dict[str, MinimalReservationPolicy]:
        items = (await self.store.list(KIND)).items
        return {p.metadata.name: p for p in items if isinstance(p, MinimalReservationPolicy)}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    clock = Clock()
    store = MemoryStore(clock)
    yield Scene(store, clock)
    await store.close()


@pytest.fixture
async def led(scene: Scene) -> AsyncIterator[Scene]:
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(lead(scene.store, scene.clock))
        yield scene
        leading.cancel()


async def ask(client: httpx.AsyncClient, body: Any, path: str = "/placements", **query: str) -> httpx.Response:
    return await client.post(BASE + path, json=plain(body), params=query)


async def test_a_what_if_reserves_nothing(scene: Scene) -> None:
    await scene.add(node("n1", reserved={"cpu": "4"}), node("n2"))
    async with manager(scene) as client:
        answer = await ask(client, workload(cpu="1"), dryRun="All")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["kind"], body["node"], body["dryRun"], body["reservation"]) == ("Placement", "n2", True, "")
    assert [n["node"] for n in body["nodes"]] == ["n2", "n1"]
    assert body["floor"] == {"cpu": "1"}
    assert await scene.policies() == {}


async def test_placing_holds_the_floor_until_the_workload_comes(led: Scene) -> None:
    await led.add(node("n1"))
    async with manager(led) as client:
        answer = await ask(client, workload(cpu="1", memory="2Gi"), **{"for": "5m"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["reservation"] == f"{KIND}/default/placement-web"
    assert answer.json()["expires"] == "2026-01-01T00:05:00Z"
    (made,) = (await led.policies()).values()
    assert validate(made) == []
    assert made.metadata.labels == {"j10ce.io/placement": "web"}
    assert plain(made.spec) == {
        "minimum": {"cpu": "1", "memory": "2Gi"},
        "selector": {"matchLabels": {"j10ce.io/workload": "web"}},
        "units": 1,
        "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n1"}},
        "ttl": "5m",
    }


async def test_asking_again_gives_the_same_answer(led: Scene) -> None:
    await led.add(node("n1"))
    async with manager(led) as client:
        await ask(client, workload(cpu="1"))
        await led.add(node("a-better-one", cpu="64"))
        again = await ask(client, workload(cpu="1"))
        assert (again.status_code, again.json()["node"]) == (201, "n1")
        other = await ask(client, workload(cpu="2"))
        assert (other.status_code, other.json()["reason"]) == (409, "Conflict")
        assert "delete it to place web anew" in other.json()["message"]
    assert len(await led.policies()) == 1


async def test_a_placement_whose_time_is_over_is_made_anew(led: Scene) -> None:
    await led.add(node("n1"))
    async with manager(led) as client:
        await ask(client, workload(cpu="1"))
        first = (await led.policies())["placement-web"]
        led.clock.now += 601
        await led.add(node("n1", heard=led.clock.now))
        again = await ask(client, workload(cpu="2"))
    assert again.status_code == 201, again.text
    second = (await led.policies())["placement-web"]
    assert second.metadata.uid != first.metadata.uid


async def test_a_placement_on_a_lost_node_moves(led: Scene) -> None:
    await led.add(node("n1"))
    async with manager(led) as client:
        await ask(client, workload(cpu="1"))
        led.wait(60)
        await led.add(node("n2", heard=led.clock.now))
        assert (await ask(client, workload(cpu="1"))).json()["node"] == "n2"


async def test_where_nothing_fits_the_answer_says_what_is_missing(led: Scene) -> None:
    await led.add(node("n1", cpu="4"), node("n2", cordoned=True))
    async with manager(led) as client:
        refused = await ask(client, workload(cpu="6"))
        whatif = await ask(client, workload(cpu="6"), dryRun="All")
    assert refused.status_code == 409
    assert "none of 2 nodes fits (turned down by open 1, room 1)" in refused.json()["message"]
    assert "n1: cpu 6 wanted, 3800m free of 3800m" in refused.json()["message"]
    assert (whatif.status_code, whatif.json()["node"], whatif.json()["refused"]) == (200, "", {"open": 1, "room": 1})
    assert await led.policies() == {}


async def test_two_managers_never_both_get_the_last_room(led: Scene) -> None:
    await led.add(node("n1", cpu="4"), node("n2", cpu="4"), node("n3", cpu="4"))
    async with manager(led) as one, manager(led) as two:
        asking = [ask(one if n % 2 else two, workload(f"w{n}", cpu="3")) for n in range(6)]
        answers = await asyncio.gather(*asking)
    placed = [a.json()["node"] for a in answers if a.status_code == 201]
    assert sorted(placed) == ["n1", "n2", "n3"]
    assert {a.status_code for a in answers} == {201, 409}
    held = [node_of(p) for p in (await led.policies()).values()]
    assert sorted(held) == ["n1", "n2", "n3"], "what was refused was taken back"


async def test_the_same_workload_placed_from_two_sides_is_one_placement(led: Scene) -> None:
    await led.add(node("n1", cpu="4"), node("n2", cpu="4"))
    async with manager(led) as one, manager(led) as two:
        answers = await asyncio.gather(*(ask(m, workload(cpu="3")) for m in (one, two, one, two)))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["node"] for a in answers}) == 1
    assert len(await led.policies()) == 1


async def test_without_a_leader_nothing_stays_reserved(scene: Scene) -> None:
    await scene.add(node("n1"))
    async with manager(scene, decide_s=0.05) as client:
        answer = await ask(client, workload(cpu="1"))
    assert (answer.status_code, "no leader decided" in answer.json()["message"]) == (503, True)
    assert await scene.policies() == {}


async def test_a_namespace_that_has_all_it_may_have_is_reported_at_once(scene: Scene) -> None:
    await scene.add(node("n1"), node("n2"), node("n3"))
    asked: list[str] = []
    changes = scene.store.watch(KIND, (await scene.store.list(KIND)).revision)

    async def refuse() -> None:
        async for event in changes:
            policy = event.object
            if event.type == "ADDED" and isinstance(policy, MinimalReservationPolicy):
                asked.append(node_of(policy))
                said = replace(verdict(policy, False), reason="NamespaceLimit", message="25 % is all it may have")
                await scene.store.put(replace(policy, status=replace(policy.status, conditions=(said,))), part="status")

    async with asyncio.TaskGroup() as group, manager(scene) as client:
        refusing = group.create_task(refuse())
        answer = await ask(client, workload(cpu="1"))
        refusing.cancel()
    assert (answer.status_code, answer.json()["message"]) == (409, "25 % is all it may have")
    assert len(asked) == 1
    assert await scene.policies() == {}


async def test_a_workload_that_was_promised_nothing_needs_no_reservation(scene: Scene) -> None:
    await scene.add(node("n1"))
    async with manager(scene) as client:
        body = (await ask(client, workload())).json()
    assert (body["node"], body["reservation"]) == ("n1", "")
    assert body["message"].endswith("nothing is held")


# -- units of a policy


def db(units: int) -> MinimalReservationPolicy:
    return witnessed(reservation("db", labels={"app": "db"}, cpu="3", units=units), n1=units)


async def test_a_holder_takes_a_unit_and_holds_no_more(scene: Scene) -> None:
    report = ReservationReport(source=f"{KIND}/default/db", units=1)
    await scene.add(db(1), node("n1", cpu="4", reserved={"cpu": "3"}, reservations=(report,)))
    async with manager(scene) as client:
        answer = (await ask(client, workload("db-0", labels={"app": "db"}))).json()
    assert (answer["node"], answer["standsOn"]) == ("n1", f"{KIND}/default/db")
    assert (await scene.policies())["placement-db-0"].spec.units == 0


async def test_a_unit_is_given_away_once(scene: Scene) -> None:
    report = ReservationReport(source=f"{KIND}/default/db", units=2)
    await scene.add(db(2), node("n1", cpu="7", reserved={"cpu": "6"}, reservations=(report,)))
    async with manager(scene) as one, manager(scene) as two:
        asking = [ask(one if n % 2 else two, workload(f"db-{n}", labels={"app": "db"})) for n in range(5)]
        answers = await asyncio.gather(*asking)
    assert sorted(a.status_code for a in answers) == [201, 201, 409, 409, 409]
    assert len(await scene.policies()) == 3


# -- what is asked for


@pytest.mark.parametrize(
    ("change", "query", "code", "words"),
    [
        pytest.param({}, {"for": "soon"}, 422, "not a duration", id="for is no duration"),
        pytest.param({}, {"for": "0s"}, 422, "no time at all", id="for is no time"),
        pytest.param({}, {"unenforced": "yes"}, 422, "write allow", id="unenforced"),
        pytest.param({}, {"dryRun": "Some"}, 400, "use All", id="dry run"),
        pytest.param({"spec": {"nodeSelektor": {}}}, {}, 422, "unknown field", id="a field that is not"),
        pytest.param({"metadata": {"name": "w" * 64}}, {}, 422, "at most 63", id="a name that no label can carry"),
        pytest.param({"kind": "QoSProfile"}, {}, 422, "kind", id="another kind"),
    ],
)
async def test_a_wrong_question_is_refused(
    scene: Scene, change: dict[str, Any], query: dict[str, str], code: int, words: str
) -> None:
    async with manager(scene) as client:
        answer = await client.post(f"{BASE}/placements", json=plain(workload(cpu="1")) | change, params=query)
    assert answer.status_code == code, answer.text
    assert words in answer.json()["message"]


async def test_only_posting_is_possible(scene: Scene) -> None:
    async with manager(scene) as client:
        assert (await client.get(f"{BASE}/placements")).status_code == 405


async def test_the_path_may_name_the_namespace(scene: Scene) -> None:
    await scene.add(node("n1"))
    async with manager(scene) as client:
        answer = await ask(client, workload(cpu="1"), "/namespaces/payments/placements", dryRun="All")
    assert answer.json()["metadata"]["namespace"] == "payments"
