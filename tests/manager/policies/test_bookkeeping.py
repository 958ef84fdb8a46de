"""What the manager does by itself: policy status, history, built-in profiles, silent nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from j10ce.errors import Denied, NotFound, StoreError
from j10ce.manager.documents.documents import Documents
from j10ce.manager.documents.silence import Hear
from j10ce.manager.documents.view import View
from j10ce.manager.keepers import run
from j10ce.manager.keepers.nodes import judge_nodes
from j10ce.manager.policies.admission import Decision
from j10ce.manager.policies.history import KEPT, ensure_built_in, keep_history
from j10ce.manager.policies.keeper import judge_policies
from j10ce.manager.policies.reports import Reports
from j10ce.manager.policies.roster import Changes, ReportedRoster
from j10ce.manager.policies.status import Basis, judged
from j10ce.manager.telemetry.trace import Silent
from j10ce.model.kinds import (
    Condition,
    CpuSection,
    EffectiveFloor,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    NodeQoSStatus,
    NodeReport,
    Object,
    PolicyRevision,
    QoSProfile,
    ReservationReport,
)
from j10ce.model.parts.progress import RolloutStatus
from j10ce.model.quantity import Quantity
from j10ce.model.stored import Event
from j10ce.policy.lifetime import revision_of
from j10ce.policy.profiles import builtin
from j10ce.policy.reach import SYSTEM_NAMESPACE
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, profile, reservation
from tests.hearing import by_heartbeat

SOURCE = "MinimalReservationPolicy/default/db"
T = TypeVar("T", bound=Object)


def at(wall: float) -> datetime:
    return datetime.fromtimestamp(wall, UTC)


def db(generation: int = 1, uid: str = "", **more: Any) -> MinimalReservationPolicy:
    made = reservation("db", cpu="1", **more)
    return replace(made, metadata=replace(made.metadata, generation=generation, uid=uid))


def node(
    name: str = "n1", *, generation: int = 1, refused: str = "", effective: str = "", heard: float = WALL
) -> NodeQoS:
    report = ReservationReport(source=SOURCE, generation=generation, workloads=2, units=1, used=1, refused=refused)
    floors = []
    if effective:
        amounts = {"promised": Quantity.parse("1"), "effective": Quantity.parse(effective)}
        floors.append(
            EffectiveFloor(node=name, workload="default/db", resource="cpu", source=SOURCE, reason="why", **amounts)
        )
    effects = NodeReport(heartbeat=at(heard), reservations=(report,), effective=tuple(floors))
    return NodeQoS(metadata=Meta(name=name), status=NodeQoSStatus(node=effects))


GRANTED = Condition(type="Admitted", status="True", reason="Granted")


def judge(policy: MinimalReservationPolicy, *nodes: NodeQoS, wall: float = WALL) -> MinimalReservationPolicyStatus:
    """The status that a policy gets when the fleet admits it and these nodes report."""
    documents = Documents()
    heard = Reports(documents, by_heartbeat(lambda: wall))
    for obj in (policy, *nodes):
        event = Event("ADDED", obj, "1")
        heard.take(event, documents.take(event))
    heard.look()
    basis = Basis(heard.standing(policy), heard.of(policy))
    return judged(policy, basis, Decision((GRANTED,), generation=policy.metadata.generation), wall)


def phase(policy: MinimalReservationPolicy, *nodes: NodeQoS, wall: float = WALL) -> str:
    return judge(policy, *nodes, wall=wall).phase


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([], "Pending", id="nobody obeys it"),
        pytest.param([node(generation=1)], "Pending", id="only its predecessor is obeyed"),
        pytest.param([node(generation=2)], "Active", id="one node obeys"),
        pytest.param([node(generation=2, effective="1")], "Active", id="the floor holds"),
        pytest.param([node(generation=2, effective="500m")], "Degraded", id="the floor falls short"),
        pytest.param([node(generation=2, refused="cpu 1 of 2 missing")], "Degraded", id="a node has no room"),
        pytest.param([node(generation=2, heard=WALL - 3600)], "Pending", id="the node is silent"),
    ],
)
def test_reports_make_the_phase(nodes: list[NodeQoS], expected: str) -> None:
    assert phase(db(generation=2), *nodes) == expected


def condition(status: MinimalReservationPolicyStatus, type_: str) -> Condition:
    return next(c for c in status.conditions if c.type == type_)


def test_what_no_node_has_reported_on_is_not_called_kept() -> None:
    status = judge(db())
    for name in ("Protected", "Effective"):
        assert (condition(status, name).status, condition(status, name).reason) == ("Unknown", "NotReported")


def test_what_is_booked_and_not_kept_is_reported_in_words_that_agree() -> None:
    status = judge(db(), node("n1", effective="500m"))
    assert condition(status, "Protected").message == "room is booked for 2 workloads; Effective says whether it is kept"
    assert condition(status, "Effective").message.startswith("1 floor does not hold; ")


def test_a_refusal_names_node_and_numbers() -> None:
    status = judge(db(), node("n1", refused="cpu 1 of 2 missing"), node("n2"))
    protected = condition(status, "Protected")
    assert (protected.status, protected.message) == ("False", "n1: cpu 1 of 2 missing")
    assert (status.nodes.applied, status.nodes.failing) == (2, 1)
    assert [(n.node, n.why) for n in status.nodes.named] == [("n1", "cpu 1 of 2 missing")]


def test_floors_that_do_not_hold_are_counted_in_words() -> None:
    one = judge(db(), node("n1", effective="500m"), node("n2", effective="1"))
    assert condition(one, "Effective").message.startswith("1 floor does not hold; default/db on n1 has 500m of 1 cpu")
    two = judge(db(), node("n1", effective="500m"), node("n2", effective="0"))
    assert condition(two, "Effective").message.startswith("2 floors do not hold; ")


def test_an_expired_policy_stays_and_says_so() -> None:
    short = db(ttl="10m")
    assert phase(short, node(heard=WALL + 599), wall=WALL + 599) == "Active"
    assert phase(short, node(heard=WALL + 600), wall=WALL + 600) == "Expired"


def test_a_policy_that_the_fleet_refuses_waits() -> None:
    heard = Reports(Documents(), by_heartbeat(lambda: WALL))
    refused = Condition(type="Admitted", status="False", reason="NoRoom")
    basis = Basis(heard.standing(db()), heard.of(db()))
    status = judged(db(), basis, Decision((refused,)), WALL)
    assert (status.phase, condition(status, "Admitted").reason) == ("Pending", "NoRoom")


def test_an_edit_that_the_fleet_refuses_is_not_rolled_out() -> None:
    refused = Condition(type="Admitted", status="False", reason="NoRoom")
    before = replace(
        judge(db()), conditions=(refused,), admitted_generation=1, rollout=RolloutStatus(revision=1, stable=1)
    )
    edited = replace(db(2, units=3, uid="u"), status=before)
    documents = Documents()
    for obj in (revision_of(db(1, units=2, uid="u")), edited):
        documents.take(Event("ADDED", obj, "1"))
    basis = Basis(Reports(documents, by_heartbeat(lambda: WALL)).standing(edited))
    status = judged(edited, basis, Decision((refused,), generation=1), WALL)
    assert (status.rollout.stable, status.phase) == (1, "Pending")
    assert condition(status, "Progressing").reason == "NotAdmitted"
    admitted = judged(edited, basis, Decision((GRANTED,), generation=2), WALL)
    assert condition(admitted, "Progressing").reason == "Reaching"


def test_a_silent_node_is_counted_and_not_blamed() -> None:
    nodes = judge(db(), node("n1"), node("n2", heard=WALL - 3600)).nodes
    assert (nodes.wanted, nodes.applied, nodes.silent, nodes.failing) == (2, 1, 1, 0)


def test_judging_again_changes_nothing() -> None:
    once = judge(db(), node(effective="1"))
    assert judge(replace(db(), status=once), node(effective="1"), wall=WALL + 30) == once


def test_a_condition_keeps_the_time_of_its_turn() -> None:
    policy = replace(db(), status=judge(db(), node()))
    still = replace(policy, status=judge(policy, node(), wall=WALL + 10))
    assert condition(still.status, "Protected").last_transition_time == at(WALL)
    turned = judge(still, node(refused="no room"), wall=WALL + 20)
    assert condition(turned, "Protected").last_transition_time == at(WALL + 20)


# -- with a store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = MemoryStore(lambda: WALL)
    yield made
    await made.close()


async def until(store: Store, kind: type[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """The objects of a kind, once they are as they should be."""
    async with asyncio.timeout(30):
        while True:
            listing = await store.list(kind.__name__)
            objects = [obj for obj in listing.items if isinstance(obj, kind)]
            if holds(objects):
                return objects
            await anext(store.watch(kind.__name__, listing.revision))


async def while_running(*works: Awaitable[None], do: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]  # type: ignore[arg-type]
        await do()
        for task in tasks:
            task.cancel()


async def test_a_report_reaches_the_policy(store: Store) -> None:
    view = View(store)

    async def scene() -> None:
        await store.put(db())
        await store.put(NodeQoS(metadata=Meta(name="n1")))
        await store.put(node(), part="status")
        (policy,) = await until(store, MinimalReservationPolicy, lambda stored: stored[0].status.phase == "Active")
        assert policy.status.observed_generation == 1
        (ready,) = await until(store, NodeQoS, lambda stored: bool(stored[0].status.conditions))
        assert ready.status.conditions[0].status == "True"

    await while_running(
        view.run(), judge_policies(store, view, lambda: WALL), judge_nodes(store, view, lambda: WALL), do=scene
    )


async def test_every_spec_of_a_policy_is_kept_ten_deep_until_it_goes(store: Store) -> None:
    async def scene() -> None:
        for n in range(1, 16):
            policy = await store.put(reservation("db", cpu=str(n)))
            await until(store, PolicyRevision, lambda stored: bool(stored))
        kept = await until(
            store, PolicyRevision, lambda stored: [r.revision for r in _sorted(stored)] == [*range(6, 16)]
        )
        assert len(kept) == KEPT
        newest = _sorted(kept)[-1]
        assert newest.data["minimum"] == {"cpu": "15"}
        assert newest.metadata.owner_references[0].uid == policy.metadata.uid
        await store.delete("MinimalReservationPolicy", "default", "db")
        await until(store, PolicyRevision, lambda stored: not stored)

    view = View(store)
    await while_running(view.run(), keep_history(store, view), do=scene)


async def test_labels_and_status_make_no_history(store: Store) -> None:
    async def scene() -> None:
        made = await store.put(profile("mine"))
        await store.put(replace(made, metadata=replace(made.metadata, labels={"a": "b"})))
        await store.put(profile("other"))
        kept = await until(store, PolicyRevision, lambda stored: len(stored) == 2)
        assert {(r.revision, r.metadata.namespace) for r in kept} == {(1, SYSTEM_NAMESPACE)}

    view = View(store)
    await while_running(view.run(), keep_history(store, view), do=scene)


def _sorted(revisions: list[PolicyRevision]) -> list[PolicyRevision]:
    return sorted(revisions, key=lambda revision: revision.revision)


async def test_a_failing_store_does_not_stop_the_bookkeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRY_S", 0)
    both = ExceptionGroup("tasks", [StoreError("full"), Denied("no rights yet")])
    failures: list[Exception] = [StoreError("full"), both]
    third = asyncio.Event()

    async def keep() -> None:
        if failures:
            raise failures.pop()
        third.set()
        await asyncio.Event().wait()

    await while_running(run.persist(keep), do=lambda: asyncio.wait_for(third.wait(), 30))  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("error", [StoreError("away"), LookupError("a fault of ours")])
async def test_a_keeper_ends_when_leadership_does_whatever_fails_with_it(error: Exception) -> None:
    begun = asyncio.Event()

    async def write() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise error

    async def keep() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            await asyncio.sleep(0)
            begun.set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        keeping = group.create_task(run.contain("any", keep))
        await begun.wait()
        keeping.cancel()
    assert keeping.cancelled()


async def test_a_keeper_goes_on_after_a_task_of_its_own_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRY_S", 0)
    attempts, third = [0], asyncio.Event()

    async def write() -> None:
        await asyncio.sleep(0)
        raise (StoreError, LookupError)[attempts[0] % 2]("failed")

    async def keep() -> None:
        attempts[0] += 1
        if attempts[0] == 3:
            third.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(write())

    await while_running(run.contain("any", keep), do=lambda: asyncio.wait_for(third.wait(), 30))  # type: ignore[arg-type,return-value]


async def test_a_judge_that_begins_again_hears_of_every_node_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A roster tells each node once: one that another judge has listened to would leave the fleet empty."""
    monkeypatch.setattr(run, "RETRY_S", 0)
    made: list[ReportedRoster] = []
    again = asyncio.Event()

    class Broken(ReportedRoster):
        def __init__(self, hear: Hear) -> None:
            super().__init__(hear)
            made.append(self)

        def look(self, *_: object) -> Changes:
            if made != [self]:
                again.set()
            raise LookupError("a fault of ours")

    view = View(store)
    keeping = run.keep_all(store, view, lambda: WALL, Silent(), around=run.Surroundings(Broken))
    await while_running(view.run(), keeping, do=lambda: asyncio.wait_for(again.wait(), 30))  # type: ignore[arg-type,return-value]


async def test_built_in_profiles_are_created_once(store: Store) -> None:
    await ensure_built_in(store, builtin())
    first = (await store.list("QoSProfile")).items
    await ensure_built_in(store, builtin())
    assert (await store.list("QoSProfile")).items == first
    assert {obj.metadata.name for obj in first} == {p.metadata.name for p in builtin()}


async def test_an_edit_survives_an_upgrade_and_the_untouched_follow_it(store: Store) -> None:
    await ensure_built_in(store, builtin())
    edited = await find(store, "ls")
    await store.put(replace(edited, spec=replace(edited.spec, priority=7)))
    upgrade = [replace(p, spec=replace(p.spec, cpu=CpuSection(weight=77))) for p in builtin()]
    await ensure_built_in(store, upgrade)
    assert (await find(store, "ls")).spec == replace(edited.spec, priority=7)
    assert (await find(store, "be")).spec.cpu.weight == 77


async def test_a_deleted_built_in_profile_comes_back_at_the_next_start(store: Store) -> None:
    await ensure_built_in(store, builtin())
    await store.delete("QoSProfile", "", "ls")
    with pytest.raises(NotFound):
        await find(store, "ls")
    await ensure_built_in(store, builtin())
    assert await find(store, "ls")


async def find(store: Store, name: str) -> QoSProfile:
    stored = await store.get("QoSProfile", "", name)
    assert isinstance(stored, QoSProfile)
    return stored
