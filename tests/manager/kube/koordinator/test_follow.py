"""A collection of an API server, kept current: listings, changes, kinds that are not installed, servers in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from j10ce.errors import Compacted, Denied, NotFound, Unavailable
from j10ce.http.status import Status
from j10ce.kube.failure import failure
from j10ce.kube.wire import WatchLine
from j10ce.manager.kube.koordinator import follow
from j10ce.manager.kube.koordinator.follow import Following


def raw(name: str, **fields: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"metadata": {"name": name, "resourceVersion": "9"}, **fields}))


class Api:
    """Answers each listing by the next of what it was given; the watch tells what is put into `lines`."""

    def __init__(self, *answers: Sequence[msgspec.Raw] | Exception) -> None:
        self.answers = [*answers]
        self.lines: asyncio.Queue[WatchLine | Exception | None] = asyncio.Queue()

    async def pages(
        self, path: str, query: Mapping[str, str], *, once: bool
    ) -> AsyncIterator[tuple[str, Sequence[msgspec.Raw]]]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        yield "7", answer

    async def watch(self, path: str, since: str, query: Mapping[str, str]) -> AsyncIterator[WatchLine]:
        while (line := await self.lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line


@asynccontextmanager
async def followed(api: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Following]:
    monkeypatch.setattr(follow, "UNKNOWN_S", 0.0)
    monkeypatch.setattr(follow, "MOST_PAUSE_S", 0.0)
    made = Following(api, "/apis/x")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(made.run())
        yield made
        task.cancel()


async def test_what_changes_is_heard_and_a_bookmark_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api([raw("a", n=1)])
    async with followed(api, monkeypatch) as held:
        await held.synced.wait()
        assert held.held["a"]["n"] == 1
        epoch = held.changed.epoch
        for line in (("BOOKMARK", raw("")), ("ADDED", raw("b", n=2)), ("DELETED", raw("a"))):
            api.lines.put_nowait(WatchLine(*line))  # type: ignore[arg-type]
        await held.changed.moved(epoch)
        await held.changed.moved(epoch + 1)
        assert {name: obj["n"] for name, obj in held.held.items()} == {"b": 2}
        assert held.changed.epoch == epoch + 2


async def test_a_kind_that_is_not_installed_is_empty_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server answers 404 without a name for a kind that it does not know."""
    unknown = failure(404, Status(), "GET /apis/x", "me")
    api = Api(unknown, NotFound("no such kind"), [raw("a")])
    async with followed(api, monkeypatch) as held:
        await held.synced.wait()
        assert held.held == {}
        await held.changed.moved(1)
        assert [*held.held] == ["a"]


async def test_without_the_right_to_know_it_is_not_empty_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with followed(Api(Denied("no right")), monkeypatch) as held:
        await held.answered.wait()
        assert not held.synced.is_set()


@pytest.mark.parametrize("trouble", [Unavailable("away"), Denied("no right"), Compacted("too long ago")], ids=repr)
async def test_what_is_held_stays_while_there_is_trouble(trouble: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api([raw("a")], trouble, [raw("a"), raw("b")])
    async with followed(api, monkeypatch) as held:
        await held.synced.wait()
        epoch = held.changed.epoch
        api.lines.put_nowait(trouble)
        await held.changed.moved(epoch)
        assert [*held.held] == ["a", "b"]
