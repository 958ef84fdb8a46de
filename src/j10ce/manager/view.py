"""The objects that the manager decides from, kept current; and the node documents made of them."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from msgspec import Struct

from j10ce.model.kinds import Hold, Meta, MinimalReservationPolicy, NodeQoS, Object, PolicyRevision, QoSProfile
from j10ce.model.schema import encode
from j10ce.policy.document import render
from j10ce.store.mirror import Mirror, mirror
from j10ce.store.store import Event, Store

K = TypeVar("K", bound=Struct)
MIRRORED: Final = (QoSProfile, MinimalReservationPolicy, Hold, NodeQoS, PolicyRevision)


class Signal:
    """A counter that can be waited for."""

    def __init__(self) -> None:
        self.epoch = 0
        self._moved = asyncio.Event()

    def move(self) -> None:
        self.epoch += 1
        self._moved.set()
        self._moved = asyncio.Event()

    async def moved(self, since: int) -> None:
        """Returns once the counter is past `since`."""
        while self.epoch == since:
            await self._moved.wait()


class View:
    def __init__(self, store: Store) -> None:
        self._mirrors: dict[str, Mirror] = {kind.__name__: mirror(store, kind.__name__) for kind in MIRRORED}
        self._documents: dict[str, tuple[str, bytes]] = {}
        self.wishes = Signal()  # moves with everything that may change a document
        self.objects = Signal()  # moves with everything, reports of nodes included

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for held in self._mirrors.values():
                group.create_task(self._follow(held))

    async def ready(self) -> None:
        """Everything is listed: a document made before would lack something."""
        for held in self._mirrors.values():
            await held.synced.wait()

    @property
    def complete(self) -> bool:
        return all(held.synced.is_set() for held in self._mirrors.values())

    def all(self, kind: type[K]) -> list[K]:
        return [obj for obj in self._mirrors[kind.__name__].held.values() if isinstance(obj, kind)]

    async def document(self, node: str) -> tuple[str, bytes]:
        """(hash, JSON) of what a node has to obey; an unknown node gets what every node gets."""
        await self.ready()
        made = self._documents.get(node)
        if made is None:
            known = next((n for n in self.all(NodeQoS) if n.metadata.name == node), None)
            document = render(
                known or NodeQoS(metadata=Meta(name=node)),
                profiles=self.all(QoSProfile),
                policies=self.all(MinimalReservationPolicy),
                holds=self.all(Hold),
                revisions=self.all(PolicyRevision),
            )
            made = self._documents[node] = (document.hash, encode(document))
        return made

    async def _follow(self, held: Mirror) -> None:
        async for event in held.changes():
            if changes_a_wish(event):
                self._documents.clear()
                self.wishes.move()
            self.objects.move()


def changes_a_wish(event: Event) -> bool:
    """A heartbeat, a condition or an annotation concerns no document."""
    new, old = event.object, event.old
    if event.type != "MODIFIED" or old is None:
        return True
    return _wish(new) != _wish(old)


def _wish(obj: Object) -> tuple[object, ...]:
    witness = obj.status.witness if isinstance(obj, MinimalReservationPolicy) else ()
    return obj.metadata.generation, obj.metadata.labels, witness
