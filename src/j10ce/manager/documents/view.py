"""The objects that the manager decides from, kept current; and who waits for a change of a node's document."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

import structlog
from msgspec import Struct
from msgspec.structs import replace

from j10ce.daemon.bell import Bell
from j10ce.errors import Denied, NotFound, StoreError
from j10ce.manager.documents.documents import Document, Documents, Nodes, changes_a_wish
from j10ce.manager.documents.silence import Silence
from j10ce.model.kinds import (
    Hold,
    MinimalReservationPolicy,
    NodeQoS,
    NodeReport,
    NodeStrategy,
    Policy,
    PolicyRevision,
    QoSProfile,
)
from j10ce.model.stored import Event
from j10ce.policy.document.document import FORMAT
from j10ce.policy.document.unrecorded import Unrecorded
from j10ce.policy.validation.reported import report_findings
from j10ce.store.mirror import Mirror
from j10ce.store.store import Store

log = structlog.get_logger()
K = TypeVar("K", bound=Struct)
Listener: TypeAlias = Callable[[Event, Nodes], None]  # the nodes are those whose document may be another one
MIRRORED: Final = (QoSProfile, MinimalReservationPolicy, NodeStrategy, Hold, NodeQoS, PolicyRevision)
SETTLE_S: Final = 0.02  # changes that come together make one document
BOOKMARK_S: Final = 15.0
TICK_S: Final = 1.0
QUIET_S: Final = 15.0  # agents report every ten seconds
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
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.mirrors: Final[Mapping[str, Mirror]] = {kind.__name__: Mirror(store, kind.__name__) for kind in MIRRORED}
        self._store = store
        self._waiting: dict[str, set[asyncio.Future[bool]]] = {}  # by node
        self._patience: dict[asyncio.Future[bool], float] = {}  # since when each waits, in that order
        self._touched: set[str] | None = set()  # nodes to wake; None: all
        self._listeners: list[Listener] = []
        self.unrecorded = Unrecorded(lambda policy: self.documents.recorded(policy))
        self.documents = Documents(self.unrecorded.before)
        self.silence = Silence(clock)
        self.nonsense: dict[str, str] = {}  # by node: what is wrong with its report
        self._bare: dict[str, NodeQoS] = {}  # those nodes, without their reports
        self.wishes = Signal()  # moves with everything that may change a document
        self.objects = Signal()  # moves with everything that is judged, reports of nodes included: with all but holds

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake())
            group.create_task(self._mark())
            group.create_task(self._listen())
            for held in self.mirrors.values():
                group.create_task(self._follow(held))

    async def ready(self) -> None:
        """Everything is listed: a document made before would lack something."""
        for held in self.mirrors.values():
            await held.synced.wait()

    @property
    def complete(self) -> bool:
        return all(held.synced.is_set() for held in self.mirrors.values())

    def nodes(self) -> list[NodeQoS]:
        """Nodes as they count: one whose report makes no sense has reported nothing."""
        return [self._bare.get(node.metadata.name, node) for node in self.all(NodeQoS)]

    def all(self, kind: type[K]) -> list[K]:
        return [obj for obj in self.mirrors[kind.__name__].held.values() if isinstance(obj, kind)]

    def policies(self) -> list[Policy]:
        """All that is rolled out, of every kind."""
        return [*self.all(QoSProfile), *self.all(MinimalReservationPolicy), *self.all(NodeStrategy)]

    @contextmanager
    def heard(self, listener: Listener) -> Iterator[None]:
        """Tell every change to `listener`, what is held already as ADDED first."""
        for held in self.mirrors.values():
            for obj in held.held.values():
                there = self._bare.get(obj.metadata.name, obj) if isinstance(obj, NodeQoS) else obj
                listener(Event("ADDED", there, obj.metadata.resource_version), set())
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def document(self, node: str, format_: int = FORMAT) -> Document:
        """What a node has to obey; an unknown node gets what every node gets."""
        await self.ready()
        return self.documents.of(node, format_)

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
            if isinstance(event.object, NodeQoS):
                event = self._heard_of(event, event.object)
            self.unrecorded.take(event)
            touched: Nodes = set()
            if changes_a_wish(event):
                touched = self.documents.take(event)
                self._touched = None if touched is None or self._touched is None else self._touched | touched
                self.wishes.move()
            for listener in self._listeners:
                listener(event, touched)
            if not isinstance(event.object, Hold):
                self.objects.move()

    def _heard_of(self, event: Event, node: NodeQoS) -> Event:
        """A report that makes no sense is logged and counted; nobody who decides gets to see it."""
        name, gone = node.metadata.name, event.type == "DELETED"
        before = event.old.status.node if isinstance(event.old, NodeQoS) else NodeReport()
        if gone:
            self.nonsense.pop(name, None)
        elif replace(node.status.node, heartbeat=before.heartbeat) != before or name in self.nonsense:
            self._check(node)  # a heartbeat alone makes no sense of nonsense, nor the other way round
        self._bare.pop(name, None)
        if name in self.nonsense:
            node = self._bare[name] = replace(node, status=replace(node.status, node=NodeReport()))
        self.silence.take(node, gone=gone)
        return event._replace(object=node)

    def _check(self, node: NodeQoS) -> None:
        name, findings = node.metadata.name, report_findings(node)
        why = str(findings[0]) if findings else ""
        if why and self.nonsense.get(name) != why:
            log.warning("report.refuse", node=name, error=why, findings=len(findings))
        self.nonsense.pop(name, None)
        if why:
            self.nonsense[name] = why

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

    async def _listen(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            await self.listen()

    async def listen(self) -> None:
        """Silence counts while nodes could be heard: where nobody was for a while, the store has to be there."""
        node = next(iter(self.mirrors["NodeQoS"].held), None)
        if node is not None and self.silence.quiet_s > QUIET_S:
            try:
                await self._store.get(*node)
            except NotFound:
                pass  # it has just gone; there is a store that says so
            except (StoreError, Denied):
                self.silence.miss()
                return
        self.silence.tick()

    async def _mark(self) -> None:
        """Whoever has waited long enough hears that nothing happened; the longest wait comes first."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(TICK_S, BOOKMARK_S))
            waits = takewhile(lambda wait: loop.time() - wait[1] >= BOOKMARK_S, self._patience.items())
            _resolve([future for future, _ in waits], False)


def _resolve(futures: Iterable[asyncio.Future[bool]], result: bool) -> None:
    for future in futures:
        if not future.done():
            future.set_result(result)
