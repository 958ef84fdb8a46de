"""Calls that begin and do not go on: a stranger's ends at once, a known caller's is its own share and soon over."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from j10ce.errors import NotFound
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.fairness import large
from j10ce.manager.grpc import health as grpc_health
from j10ce.manager.grpc import visit
from j10ce.manager.grpc.proto import requests_pb2 as ask
from tests.manager.grpc.both import KNOWN, Both
from tests.manager.grpc.test_access import Metadata, enrolled
from tests.manager.grpc.test_verbs import POLICY, Refused, creating

SERVICE = f"/j10ce.v1alpha1.{POLICY}Service"
CHECK = "/grpc.health.v1.Health/Check"


def begun(both: Both, method: str, metadata: Metadata = ()) -> Any:
    """A call whose message is not sent."""
    return both.channel.stream_unary(method)(metadata=metadata)


async def code(call: Any) -> grpc.StatusCode:
    async with asyncio.timeout(30):
        with pytest.raises(Refused) as refused:
            await call
    return refused.value.code()


async def first_refusal(calls: list[Any]) -> grpc.StatusCode:
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(code(call)) for call in calls]
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for one in rest:
            one.cancel()
    return next(iter(done)).result()


@pytest.mark.parametrize("method", ["Get", "List", "Create", "Watch"])
async def test_a_stranger_is_refused_before_it_has_sent_anything(both: Both, method: str) -> None:
    assert await code(begun(both, f"{SERVICE}/{method}")) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", ["Get", "Create", "Watch"])
async def test_who_is_known_and_sends_nothing_is_not_waited_for(
    both: Both, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(visit, "ARRIVAL_S", 0.05)
    assert await code(begun(both, f"{SERVICE}/{method}", KNOWN)) is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize(("method", "most"), [("List", 64), ("Watch", 100)])
async def test_calls_that_do_not_go_on_are_their_callers_share(both: Both, method: str, most: int) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    calls = [begun(both, f"{SERVICE}/{method}", viewer) for _ in range(most + 1)]
    assert await first_refusal(calls) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await both.stub(POLICY).List(ask.ListRequest(), metadata=KNOWN) is not None
    for call in calls:
        call.cancel()


async def test_of_messages_that_do_not_come_few_of_one_caller_are_waited_for_together(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How large one is shows when it is there: sixty-four that lacked their last bytes were sixty-four megabytes."""
    monkeypatch.setattr(large, "PATIENCE_S", 0.05)
    eve, bob = await enrolled(both, "eve", role="editor"), await enrolled(both, "bob", role="editor")
    calls = [begun(both, f"{SERVICE}/Create", eve) for _ in range(large.MOST_ARRIVING + 1)]
    assert await first_refusal(calls) is grpc.StatusCode.RESOURCE_EXHAUSTED
    for caller in (bob, KNOWN):
        assert await both.stub(POLICY).List(ask.ListRequest(), metadata=caller) is not None
    for call in calls:
        call.cancel()


async def test_large_messages_of_one_caller_are_worked_on_two_at_a_time(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As large requests over REST, which share that bound."""
    monkeypatch.setattr(large, "PATIENCE_S", 0.5)
    eve, working, go = await enrolled(both, "eve", role="editor"), list[str](), asyncio.Event()

    async def slow(*_: Any, **__: Any) -> Any:
        working.append("one")
        await go.wait()
        raise NotFound("nothing is made here")

    monkeypatch.setattr(Verbs, "create", slow)
    wish = creating()
    wish.object.metadata.annotations["note"] = "x" * 200_000
    calls = [both.stub(POLICY).Create(wish, metadata=eve) for _ in range(5)]
    async with asyncio.TaskGroup() as group:
        codes = [group.create_task(code(call)) for call in calls]
        await asyncio.wait(codes, return_when=asyncio.FIRST_COMPLETED)
        assert len(working) == large.MOST_OF_ONE
        go.set()
    answered = Counter(task.result() for task in codes)
    assert answered[grpc.StatusCode.RESOURCE_EXHAUSTED] >= 1
    assert set(answered) == {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.NOT_FOUND}
    assert await code(both.stub(POLICY).Create(wish, metadata=eve)) is grpc.StatusCode.NOT_FOUND, "all have left"


async def test_strangers_who_do_not_say_whose_health_they_ask_for_are_few(both: Both) -> None:
    calls = [begun(both, CHECK) for _ in range(9)]
    assert await first_refusal(calls) is grpc.StatusCode.RESOURCE_EXHAUSTED
    for call in calls:
        call.cancel()


async def test_nobody_waits_long_for_a_question_about_health(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_health, "QUESTION_S", 0.05)
    assert await code(begun(both, CHECK)) is grpc.StatusCode.DEADLINE_EXCEEDED
    answer = await health_pb2_grpc.HealthStub(both.channel).Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_the_health_of_a_service_that_is_not_there(both: Both) -> None:
    asked = health_pb2.HealthCheckRequest(service="nothing")
    health = health_pb2_grpc.HealthStub(both.channel)
    assert await code(health.Check(asked)) is grpc.StatusCode.NOT_FOUND
    watch = health.Watch(asked)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()
