"""A fault of our own in the store's background is survived: logged, nobody waits for ever, everything begins afresh."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from j10ce.errors import Compacted, Unavailable, Unsure
from j10ce.store.etcd import store as etcd_store
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.schemes import open_store
from j10ce.store.store import ABSENT
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, names, soon


@pytest.fixture
async def store(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EtcdStore]:
    monkeypatch.setattr(etcd_store, "RESTART_S", 0.01)
    store = open_store(url, lambda: WALL)
    assert isinstance(store, EtcdStore)
    yield store
    await store.close()


def break_once(of: object, method: str, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """The next call of a method fails; the event tells that it was."""
    good, broken = getattr(of, method), asyncio.Event()

    def bad(*args: Any, **kwargs: Any) -> Any:
        if broken.is_set():
            return good(*args, **kwargs)
        broken.set()
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(of, method, bad)
    return broken


async def test_a_feed_that_fails_begins_afresh(store: EtcdStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(2):  # a second time, too
        watch = store.watch(KIND, (await store.list(KIND)).revision)
        before = await store.put(reservation(f"before-{n}"))
        assert (await anext(watch)).object == before
        broken = break_once(store._feed, "_apply", monkeypatch)
        with capture_logs() as logs:
            with suppress(Unsure):  # its answer may come after its event
                await store.put(reservation(f"during-{n}"))
            await broken.wait()
            with pytest.raises(Compacted):
                await soon(anext(watch))
        assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["store.fail"]
        await store.put(reservation(f"after-{n}"), expect=ABSENT)
        wanted = [f"default/{when}-{m}" for when in ("after", "before", "during") for m in range(n + 1)]
        assert names(await store.list(KIND)) == wanted


async def test_a_writer_that_fails_leaves_its_callers_in_doubt_and_goes_on(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put(reservation("before"))
    break_once(store._writer, "_settle_whole", monkeypatch)
    with pytest.raises(Unsure, match="may or may not have happened"):
        await store.put(reservation("lost"))
    await store.put(reservation("after"), expect=ABSENT)
    assert names(await store.list(KIND)) == ["default/after", "default/before", "default/lost"]


async def test_nobody_waits_for_an_answer_that_was_cut_off(store: EtcdStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.put(reservation("before"))
    break_once(store._feed, "_catch_up", monkeypatch)
    with pytest.raises(Unavailable, match="cut off"):
        await store.list(KIND)
    assert names(await store.list(KIND)) == ["default/before"]
