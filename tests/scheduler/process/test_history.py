"""Accounts that are written down, whatever the API server says to it."""

from __future__ import annotations

import asyncio

import pytest

from j10ce.errors import Denied, Finding, Invalid, QosError, Unavailable
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.process.history import HistoryKeeper
from tests.scheduler.process.api import FakeApi

OBJECT = "/api/v1/namespaces/j10ce-system/configmaps/j10ce-qos-scheduler-history"
TOO_LARGE = Invalid([Finding("data", None, "Too long: must have at most 1048576 bytes")], "history")


@pytest.mark.parametrize("error", [TOO_LARGE, Denied("no"), Unavailable("away")], ids=["invalid", "denied", "away"])
async def test_a_history_that_is_refused_ends_no_replica(error: QosError) -> None:
    api, accounts = FakeApi(), Accounts()
    api.refuse[OBJECT] = error
    accounts.seen(PodFacts("u", "shop", "web", Shape((), (0, 0)), created=1.0), 1.0)
    keeper = HistoryKeeper(api, accounts, lambda: 2.0)  # type: ignore[arg-type]
    keeping = asyncio.get_running_loop().create_task(keeper.keep())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not api.refuse
    assert not keeping.done()
    keeping.cancel()
    await asyncio.wait([keeping])
