"""What a viewer, or whoever has a viewer's token, tries: to read so much, or so slowly, that others wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from j10ce.daemon import pace
from j10ce.daemon.pace import Slices
from j10ce.http.status import Refusal
from j10ce.manager.api import forms
from j10ce.manager.api.forms import Encoded
from j10ce.manager.fairness import rate_limits
from j10ce.manager.fairness.lines import Lines
from j10ce.manager.fairness.parts import Parts
from j10ce.manager.fairness.rate_limits import PEOPLE, Limits
from j10ce.manager.identity import Act, Caller, Role, acting
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Meta, QoSProfile
from j10ce.model.schema import plain
from j10ce.testing.build import profile

VIC, EVE, ADMIN = Caller("vic", Role.VIEWER), Caller("eve", Role.EDITOR), Caller("adm", Role.ADMIN)
SIZE = 250_000


class Hand:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def large(revision: int = 1) -> QoSProfile:
    meta = Meta(name="p", uid="u", resource_version=str(revision), annotations={"a": "x" * SIZE})
    return replace(profile("p"), metadata=meta)


async def test_of_all_who_watch_a_large_object_one_line_is_made_in_a_turn() -> None:
    """A hundred tables of one object of a megabyte kept everybody else waiting for seconds."""
    lines, turn = Lines(Slices()), 0
    made_in: list[int] = []

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def watch() -> None:
        with acting(Act(caller=ADMIN)):
            async with lines.room(large()):
                made_in.append(turn)

    async with asyncio.TaskGroup() as group:
        other = group.create_task(others())
        async with asyncio.TaskGroup() as watches:
            for _ in range(50):
                watches.create_task(watch())
        other.cancel()
    assert len(set(made_in)) == len(made_in) == 50


async def test_lines_that_nobody_reads_are_kept_within_their_callers_share() -> None:
    lines, read, waiting = Lines(Slices()), asyncio.Event(), asyncio.Event()
    held = {VIC.name: 0, ADMIN.name: 0}
    most = PEOPLE.answer_bytes // SIZE

    async def watch(caller: Caller, revision: int) -> None:
        with acting(Act(caller=caller)):
            async with lines.room(large(revision)):
                held[caller.name] += 1
                if held[ADMIN.name] == 100:
                    waiting.set()
                await read.wait()

    async with asyncio.TaskGroup() as group:
        for n in range(100):
            group.create_task(watch(VIC, n))
        for n in range(100):
            group.create_task(watch(ADMIN, n))
        await waiting.wait()
        assert 0 < held[VIC.name] <= most
        read.set()
    assert held[VIC.name] == 100


def test_a_row_of_a_table_is_made_once_for_all_who_watch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(obj: object) -> object:
        nonlocal made
        made += 1
        return plain(obj)

    monkeypatch.setattr(forms, "plain", counted)
    encoded, hand = Encoded(), Hand()
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    tables = [forms.choose(accept, "Object", KINDS["QoSProfile"], hand, encoded) for _ in range(100)]
    rows = {forms.whole(form, large()) for form in tables}
    assert (made, len(rows)) == (1, 1)
    assert forms.whole(tables[0], large(), kept=False) in rows
    assert made == 2


async def test_whoever_used_up_its_time_watches_more_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_s: list[float] = []

    async def sleep(seconds: float) -> None:
        waited_s.append(seconds)

    monkeypatch.setattr("j10ce.manager.fairness.rate_limits.asyncio.sleep", sleep)
    share = Limits(Hand())
    await share.rest(VIC, writes=False)
    share.spent(VIC, 0.2, writes=False)
    await share.rest(VIC, writes=False)
    share.spent(VIC, 60.0, writes=False)
    await share.rest(VIC, writes=False)
    share.spent(ADMIN, 60.0, writes=False)
    await share.rest(ADMIN, writes=False)
    assert waited_s == pytest.approx([0, 0.4, rate_limits.LONGEST_TURN_S, 0])


async def test_a_list_of_few_large_objects_is_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hand, turns = Hand(), 0
    monkeypatch.setattr(pace, "perf_counter", hand)
    slices: list[int] = []

    def work(some: Sequence[int]) -> int:
        hand.now += sum(some)
        slices.append(len(some))
        return turns

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        other = group.create_task(others())
        done_in = await Slices().of([1] * 12, work)
        other.cancel()
    assert slices == [1] * 12
    assert len(set(done_in)) == 12


async def test_a_list_of_small_objects_is_made_in_few_slices() -> None:
    """As long as they take no time."""
    sizes = await Slices().of(range(500), len)
    assert sum(sizes) == 500
    assert max(sizes) == pace.SLICE
    assert await Slices().of([], len) == [0]


def test_what_one_caller_used_up_is_not_refused_to_others_of_its_class() -> None:
    """While an editor is in debt, a viewer is served: neither has the other's part."""
    share = Limits(Hand())
    for _ in range(10):
        share.spent(EVE, 0.5, writes=True)
        share.spent(VIC, 0.001, writes=False)
    with pytest.raises(Refusal, match="people take more than 40% of our time, and eve an equal part or more"):
        share.request(EVE, writes=True)
    share.request(VIC)
    share.request(Caller("new", Role.VIEWER))


def test_a_crowd_that_uses_too_much_together_is_refused_from_the_largest_down() -> None:
    share = Limits(Hand())
    callers = [Caller(f"v{n}", Role.VIEWER) for n in range(100)]
    for n, caller in enumerate(callers):
        share.spent(caller, n / 1000, writes=False)

    def is_served(caller: Caller) -> bool:
        try:
            share.request(caller)
        except Refusal:
            return False
        return True

    served = [is_served(caller) for caller in callers]
    assert served == sorted(served, reverse=True)
    assert served[0]
    assert not served[-1]


def test_whoever_used_nothing_is_over_no_part() -> None:
    """Also where everybody else of its class is forgotten."""
    now = [0.0]
    parts = Parts(lambda: now[0], 10)
    parts.add("busy", 5.0)
    now[0] += 60.0
    assert not parts.is_over("new", 0.4)
