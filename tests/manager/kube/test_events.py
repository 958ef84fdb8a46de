"""What has become of a policy, as events of Kubernetes tell it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.errors import NotFound, Unavailable
from j10ce.kube.events import BURST, Recorder
from j10ce.manager.policies.transitions import happenings
from j10ce.model.kinds import Condition, MinimalReservationPolicy, MinimalReservationPolicyStatus, UnitCount
from j10ce.model.parts.progress import RolloutStatus
from j10ce.model.stored import Happening
from j10ce.testing.build import WALL, reservation

LOST = Happening("Warning", "NodeLost", "1 units have no place")


class Api:
    """Keeps what it is sent; `away` answers that it is."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.away = False

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        if self.away:
            raise Unavailable("away")
        self.events[f"{path}/{body['metadata']['name']}"] = body
        return b"{}"

    async def patch(self, path: str, body: dict[str, Any], how: str) -> bytes:
        if path not in self.events:
            raise NotFound(path)
        self.events[path] |= body
        return b"{}"


def refusal(generation: int = 1, message: str = "no room") -> Condition:
    return Condition(type="Admitted", status="False", reason="NoRoom", message=message, observed_generation=generation)


def events(before: MinimalReservationPolicyStatus, after: MinimalReservationPolicyStatus) -> list[tuple[str, str]]:
    policy = replace(reservation("db", units=2, cpu="1"), status=before)
    return [(h.type, h.reason) for h in happenings(policy, after)]


def test_a_refusal_is_reported_once_for_each_generation_whatever_its_numbers() -> None:
    none, one = MinimalReservationPolicyStatus(), MinimalReservationPolicyStatus(conditions=(refusal(),))
    assert events(none, one) == [("Warning", "Refused")]
    assert events(one, replace(one, conditions=(refusal(message="less room"),))) == []
    assert events(one, replace(one, conditions=(refusal(2),))) == [("Warning", "Refused")]


def test_turns_of_the_phase_and_of_a_rollout_are_reported() -> None:
    pending = MinimalReservationPolicyStatus()
    active = replace(pending, phase="Active", units=UnitCount(wanted=2, placed=2))
    assert events(pending, active) == [("Normal", "Active")]
    assert events(active, replace(active, phase="Degraded")) == [("Warning", "Degraded")]
    stopped = replace(active, rollout=RolloutStatus(revision=2, stopped="3 nodes fail"))
    assert events(active, stopped) == [("Warning", "RolloutStopped")]
    assert events(stopped, stopped) == []


@pytest.fixture
def policy() -> MinimalReservationPolicy:
    made = reservation("db", namespace="shop")
    return replace(made, metadata=replace(made.metadata, uid="u1"))


async def settled(recorder: Recorder) -> None:
    """Every event so far is written or given up."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        await recorder.written()
        running.cancel()


def test_equal_events_are_counted_and_one_that_has_ended_is_made_anew(policy: MinimalReservationPolicy) -> None:
    async def run() -> None:
        api = Api()
        recorder = Recorder(api, "j10ce-controller-manager", "m", lambda: WALL)  # type: ignore[arg-type]
        recorder.tell(policy, LOST)
        recorder.tell(policy, LOST)
        await settled(recorder)
        (event,) = api.events.values()
        assert (event["count"], event["reason"], event["metadata"]["namespace"]) == (2, "NodeLost", "shop")
        assert event["involvedObject"]["uid"] == "u1"
        api.events.clear()
        recorder.tell(policy, LOST)
        await settled(recorder)
        assert [e["count"] for e in api.events.values()] == [1]

    asyncio.run(run())


def test_one_object_cannot_flood_and_gets_its_word_back_in_time(policy: MinimalReservationPolicy) -> None:
    async def run() -> None:
        api, now = Api(), [WALL]
        recorder = Recorder(api, "j10ce-controller-manager", "m", lambda: now[0])  # type: ignore[arg-type]
        for n in range(3 * BURST):
            recorder.tell(policy, LOST._replace(message=str(n)))
        await settled(recorder)
        assert len(api.events) == BURST
        now[0] += 60
        recorder.tell(policy, LOST._replace(message="later"))
        await settled(recorder)
        assert len(api.events) == BURST + 1

    asyncio.run(run())


def test_an_api_server_that_is_away_costs_the_event_and_no_more(policy: MinimalReservationPolicy) -> None:
    async def run() -> None:
        api = Api()
        recorder = Recorder(api, "j10ce-controller-manager", "m", lambda: WALL)  # type: ignore[arg-type]
        api.away = True
        recorder.tell(policy, LOST)
        await settled(recorder)
        api.away = False
        recorder.tell(policy, LOST)
        await settled(recorder)
        assert len(api.events) == 1

    asyncio.run(run())
