"""What was decided is carried out once, by a leader alone, and its fate is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from j10ce.errors import Conflict, Finding, Invalid, NotFound, QosError, Unavailable, Unsure
from j10ce.kube.events import Subject
from j10ce.model.stored import Happening
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict, Nominate
from j10ce.scheduler.process import hands
from j10ce.scheduler.process.hands import NOT_LEADING, Hands
from j10ce.scheduler.process.metrics import SchedulerMetrics
from tests.scheduler.process.api import FakeApi, budget, path

POD, VICTIM = PodFacts("u-1", "shop", "web"), PodFacts("u-2", "shop", "crunch", node="a")
BIND = Bind(POD, "a", {"note": "here"}, "score 9")
BINDING = f"{path(POD)}/binding"


class Fates:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def bound(self, uid: str) -> None:
        self.heard.append(("bound", uid))

    def bind_failed(self, uid: str, why: str) -> None:
        self.heard.append(("bind failed", uid, why))

    def evict_failed(self, uid: str, why: str) -> None:
        self.heard.append(("evict failed", uid, why))


class Around:
    def __init__(self, api: FakeApi) -> None:
        self.fates, self.events, self.leads = Fates(), list[tuple[str, str]](), True
        metrics = SchedulerMetrics()
        self.hands = Hands(api, self.fates, lambda: self.leads, self._tell, metrics)  # type: ignore[arg-type]

    def _tell(self, about: Subject, happening: Happening) -> None:
        self.events.append((about.name, happening.reason))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Hands]:
        task = asyncio.get_running_loop().create_task(self.hands.run())
        yield self.hands
        await self.hands.done()
        task.cancel()
        await asyncio.wait([task])


async def test_a_pod_is_bound_and_its_owner_told() -> None:
    api = FakeApi(POD)
    around = Around(api)
    async with around.working() as hands:
        hands.take(BIND)
    assert api.pods[path(POD)] == ("u-1", "a")
    assert around.fates.heard == [("bound", "u-1")]
    assert around.events == [("web", "Scheduled")]


async def test_a_binding_whose_answer_was_lost_is_looked_up() -> None:
    api = FakeApi(POD)
    api.lost.add(BINDING)
    around = Around(api)
    async with around.working() as hands:
        hands.take(BIND)
    assert around.fates.heard == [("bound", "u-1")]


async def test_a_pod_that_somebody_else_bound_is_not_ours() -> None:
    around = Around(FakeApi(POD._replace(node="b")))
    async with around.working() as hands:
        hands.take(BIND)
    ((what, uid, why),) = around.fates.heard
    assert (what, uid) == ("bind failed", "u-1")
    assert "assigned to b" in why


@pytest.mark.parametrize("error", [NotFound("gone"), Unavailable("away")], ids=["gone", "away"])
async def test_a_binding_that_failed_is_reported_with_the_reason(error: QosError) -> None:
    api = FakeApi(POD)
    api.refuse[BINDING] = error
    around = Around(api)
    async with around.working() as hands:
        hands.take(BIND)
    assert around.fates.heard == [("bind failed", "u-1", str(error))]
    assert around.events == []


async def test_who_does_not_lead_any_more_sends_nothing() -> None:
    api = FakeApi(POD, VICTIM)
    around = Around(api)
    around.leads = False
    async with around.working() as hands:
        for decision in (
            BIND,
            Evict(VICTIM, POD, "a", "rule"),
            Nominate(POD, "a"),
            Defer(POD, "FailedScheduling", "no", 9.0),
        ):
            hands.take(decision)
    assert api.pods[path(POD)] == ("u-1", "")
    assert (api.evicted, api.patches) == ([], [])
    assert around.fates.heard == [("bind failed", "u-1", NOT_LEADING), ("evict failed", "u-2", NOT_LEADING)]


async def test_a_budget_that_does_not_allow_an_eviction_is_named() -> None:
    api = FakeApi(POD, VICTIM)
    api.refuse["evict crunch"] = budget()
    around = Around(api)
    async with around.working() as hands:
        hands.take(Evict(VICTIM, POD, "a", "rule 3: 40 s of slack"))
    ((what, uid, why),) = around.fates.heard
    assert (what, uid) == ("evict failed", "u-2")
    assert "disruption budget" in why


@pytest.mark.parametrize("error", [Unsure("no answer"), Unavailable("away")], ids=["lost", "away"])
async def test_an_eviction_that_nobody_answered_is_asked_for_again_and_no_other_pod_goes(
    error: QosError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hands, "EVICT_AGAIN_S", (0.0,))
    api = FakeApi(POD, VICTIM)
    api.refuse["evict crunch"] = error
    around = Around(api)
    async with around.working() as working:
        working.take(Evict(VICTIM, POD, "a", "rule"))
    assert api.evicted == ["u-2"]
    assert around.fates.heard == []


@pytest.mark.parametrize(
    "decision", [Nominate(POD, "a"), Defer(POD, "FailedScheduling", "no", 9.0), Evict(VICTIM, POD, "a", "rule"), BIND]
)
async def test_an_answer_that_nobody_expected_costs_no_other_pod_anything(decision: Decision) -> None:
    api = FakeApi(POD, VICTIM)
    for what in (f"{path(POD)}/status", "evict crunch", BINDING):
        api.refuse[what] = Invalid([Finding("status", None, "may not be set on pods that are bound")], "web")
    around = Around(api)
    async with around.working() as working:
        working.take(decision)
        await working.done()
        api.refuse.clear()
        working.take(BIND)
    assert api.pods[path(POD)] == ("u-1", "a")


async def test_what_is_decided_about_a_pod_is_done_in_its_order_and_why_it_waited_is_not_said_beyond() -> None:
    api = FakeApi(POD)
    around = Around(api)
    async with around.working() as working:
        for decision in (Nominate(POD, "a"), Defer(POD, "FailedScheduling", "no", 9.0), Nominate(POD, ""), BIND):
            working.take(decision)
    assert api.pods[path(POD)] == ("u-1", "a")
    assert [body["status"] for _, body in api.patches] in ([], [{"nominatedNodeName": "a"}])


async def test_who_leads_no_more_does_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "EVICT_AGAIN_S", (0.0,))
    api = FakeApi(POD, VICTIM)
    api.refuse["evict crunch"] = Unsure("no answer")
    around = Around(api)
    leads = iter((True, False))
    monkeypatch.setattr(around.hands, "_leads", lambda: next(leads))
    async with around.working() as working:
        working.take(Evict(VICTIM, POD, "a", "rule"))
    assert api.evicted == []
    assert around.fates.heard == [("evict failed", "u-2", NOT_LEADING)]


@pytest.mark.parametrize("error", [NotFound("gone"), Conflict("another")], ids=["gone", "another pod of that name"])
async def test_a_victim_that_is_gone_already_is_no_failure(error: QosError) -> None:
    api = FakeApi(POD, VICTIM)
    api.refuse["evict crunch"] = error
    around = Around(api)
    async with around.working() as hands:
        hands.take(Evict(VICTIM, POD, "a", "rule"))
    assert around.fates.heard == []


async def test_a_pod_that_waits_is_told_once_for_each_reason() -> None:
    api = FakeApi(POD)
    around = Around(api)
    async with around.working() as hands:
        for why in ("0/1 nodes are available: 1 Insufficient cpu.",) * 3 + ("0/2 nodes are available.",):
            hands.take(Defer(POD, "FailedScheduling", why, 9.0))
            await hands.done()
    conditions = [body["status"]["conditions"][0] for _, body in api.patches]
    assert [c["message"] for c in conditions] == [
        "0/1 nodes are available: 1 Insufficient cpu.",
        "0/2 nodes are available.",
    ]
    assert {(c["type"], c["status"], c["reason"]) for c in conditions} == {("PodScheduled", "False", "Unschedulable")}
    assert around.events == [("web", "FailedScheduling")] * 2
