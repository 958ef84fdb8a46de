"""What an API server has of one collection, kept current; of one that it does not know, nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog

from j10ce.errors import Compacted, Denied, NotFound, NotServed, StoreError
from j10ce.http.retry import pauses
from j10ce.kube.client import KubeClient
from j10ce.kube.transport import NO_QUERY
from j10ce.kube.wire import WatchLine, revision_of
from j10ce.manager.documents.view import Signal

log = structlog.get_logger()
UNKNOWN_S: Final = 30.0  # between looks for a kind that is not installed
MOST_PAUSE_S: Final = 30.0


class Following:
    """Objects as plain data, by name: the collection is one of a namespace, or of kinds that have none."""

    def __init__(self, client: KubeClient, path: str, query: Mapping[str, str] = NO_QUERY) -> None:
        self._client, self._path, self._query = client, path, query
        self.held: dict[str, Any] = {}
        self.synced = asyncio.Event()  # set once it is known what there is, or that there is no such kind
        self.answered = asyncio.Event()  # set once the server said that, or that we have no right to know
        self.changed = Signal()

    async def run(self) -> None:
        """For ever. What is held stays while the API server is away."""
        tries, logged = pauses(), ""
        while True:
            try:
                await self._follow()
                tries, logged, pause_s = pauses(), "", 0.0
            except Compacted:
                pause_s = 0.0
            except (NotFound, NotServed):
                self.take({})
                pause_s = UNKNOWN_S
            except (StoreError, Denied) as e:
                if isinstance(e, Denied):
                    self.answered.set()
                if str(e) != logged:
                    log.warning("koordinator.follow", path=self._path, error=str(e))
                logged, pause_s = str(e), min(next(tries), MOST_PAUSE_S)
            await asyncio.sleep(pause_s)

    async def _follow(self) -> None:
        """One listing, and what changes until the server ends the watch."""
        held: dict[str, Any] = {}
        at = ""
        async for revision, texts in self._client.pages(self._path, self._query, once=True):
            held |= {_name(obj): obj for obj in map(_decoded, texts)}
            at = at or revision
        if held != self.held or not self.synced.is_set():
            self.take(held)
        async with aclosing(self._client.watch(self._path, at, self._query)) as lines:
            async for line in lines:
                self._hear(line)

    def take(self, held: dict[str, Any]) -> None:
        """From now on there is this."""
        moved = held != self.held or not self.synced.is_set()
        self.held = held
        self.synced.set()
        self.answered.set()
        if moved:
            self.changed.move()

    def _hear(self, line: WatchLine) -> None:
        revision_of(line)  # a line that has none is no change
        if line.type == "BOOKMARK":
            return
        obj = _decoded(line.object)
        rest = {name: other for name, other in self.held.items() if name != _name(obj)}
        self.take(rest if line.type == "DELETED" else {**rest, _name(obj): obj})


def _decoded(text: msgspec.Raw) -> Any:
    return msgspec.json.decode(text)


def _name(obj: Any) -> str:
    return str(obj.get("metadata", {}).get("name", ""))
