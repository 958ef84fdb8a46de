"""The objects that the manager decides from, kept current; and who waits for a change of a node's document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from j10ce.manager.documents import Document, Documents, Nodes, changes_a_wish
from j10ce.model.kinds import Hold, MinimalReservationPolicy, NodeQoS, PolicyRevision, QoSProfile
from j10ce.store.bell import Bell
from j10ce.store.mirror import Mirror, mirror
from j10ce.store.store import Event, Store

K = TypeVar("K", bound=Struct)
Listener: TypeAlias = Callable[[Event, Nodes], None]  # the nodes are those whose document may be another one
MIRRORED: Final = (QoSProfile, MinimalReservationPolicy, Hold, NodeQoS, PolicyRevision)
SETTLE_S: Final = 0.02  # changes that come together make one document
BOOKMARK_S: Final = 15.0
TICK_S: Final = 1.0
TOGETHER: Final = 256  # watchers woken before others have a turn


class Signal:
    """A counter that can be waited for."""

    def __init__(self) -> None:
        self.epoch = 0
        self._moved = Bell()

    def move(self) -> None:
        self.epoch += 1
        self._moved.ring()

    async def moved(self, since: int) -> None:
        """Returns once the counter is past `since`."""
        while self.epoch == since:
            await self._moved.wait()


class View:
    def __init__(self, store: Store) -> None:
        self.mirrors: Final[Mapping[str, Mirror]] = {kind.__name__: mirror(store, kind.__name__) for kind in MIRRORED}
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}  # by node
        self._patience: dict[asyncio.Future[bool], float] = {}  # since when each waits, in that order
        self._touched: set[str] | None = set()  # nodes to wake; None: all
        self._listeners: list[Listener] = []
        self.documents = Documents()
        self.wishes = Signal()  # moves with everything that may change a document
        self.objects = Signal()  # moves with everything that is judged, reports of nodes included: with all but holds

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake())
            group.create_task(self._mark())
            for held in self.mirrors.values():
                group.create_task(self._follow(held))

    async def ready(self) -> None:
        """Everything is listed: a document made before would lack something."""
        for held in self.mirrors.values():
            await held.synced.wait()

    @property
    def complete(self) -> bool:
        return all(held.synced.is_set() for held in self.mirrors.values())

    def all(self, kind: type[K]) -> list[K]:
        return [obj for obj in self.mirrors[kind.__name__].held.values() if isinstance(obj, kind)]

    @contextmanager
    def heard(self, listener: Listener) -> Iterator[None]:
        """Tell every change to `listener`, what is held already as ADDED first."""
        for held in self.mirrors.values():
            for obj in held.held.values():
                listener(Event("ADDED", obj, obj.metadata.resource_version), set())
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def document(self, node: str) -> Document:
        """What a node has to obey; an unknown node gets what every node gets."""
        await self.ready()
        return self.documents.of(node)

    async def moved(self, node: str) -> bool:
        """True when the document of a node may have changed, False when it did not for BOOKMARK_S.

        Only for nodes that the documents follow. No timer each: a manager has ten thousand of these.
        """
        waiting = self._waiting.setdefault(node, set())
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        waiting.add(future)
        self._patience[future] = loop.time()
        try:
            return await future
        finally:
            self._patience.pop(future, None)
            waiting.discard(future)
            if not waiting and self._waiting.get(node) is waiting:
                del self._waiting[node]

    async def _follow(self, held: Mirror) -> None:
        async for event in held.changes():
            touched: Nodes = set()
            if changes_a_wish(event):
                touched = self.documents.take(event)
                self._touched = None if touched is None or self._touched is None else self._touched | touched
                self.wishes.move()
            for listener in self._listeners:
                listener(event, touched)
            if not isinstance(event.object, Hold):
                self.objects.move()

    async def _wake(self) -> None:
        epoch = self.wishes.epoch
        while True:
            await self.wishes.moved(epoch)
            await asyncio.sleep(SETTLE_S)
            epoch, touched, self._touched = self.wishes.epoch, self._touched, set()
            nodes = list(self._waiting) if touched is None else [n for n in touched if n in self._waiting]
            for begin in range(0, len(nodes), TOGETHER):
                for node in nodes[begin : begin + TOGETHER]:
                    _resolve(self._waiting.get(node, ()), True)
                await asyncio.sleep(0)

    async def _mark(self) -> None:
        """Whoever has waited long enough hears that nothing happened; the longest wait comes first."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(TICK_S, BOOKMARK_S))
            _resolve(self._since(loop.time() - BOOKMARK_S), False)

    def _since(self, before: float) -> list[asyncio.Future[bool]]:
        return [future for future, _ in takewhile(lambda wait: wait[1] <= before, self._patience.items())]


def _resolve(futures: Iterable[asyncio.Future[bool]], result: bool) -> None:
    for future in futures:
        if not future.done():
            future.set_result(result)
