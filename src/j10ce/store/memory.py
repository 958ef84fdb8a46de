"""The store that lasts as long as its process: for tests, the simulator and throw-away managers."""

from __future__ import annotations

from collections.abc import Callable

from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Listing, Part, key_of
from j10ce.store.revise import Decide, kept, removed, revise
from j10ce.store.store import ANY, Expect, Movable, Store
from j10ce.store.table import KEPT_CHANGES, Table, Watch, first_revision


class MemoryStore:
    def __init__(self, wall: Callable[[], float], *, kept: int = KEPT_CHANGES) -> None:
        self._wall = wall
        self._table = Table(first_revision(wall()), kept=kept)

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        return self._table.get(Key(kind, namespace, name))

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        return self._table.list(kind, namespace)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        def decide(old: Object | None, revision: str) -> Object:
            return revise(old, obj, expect=expect, part=part, revision=revision, wall=self._wall())

        return self._write(key_of(obj), decide)

    async def restore(self, obj: Object) -> Object:
        return self._write(key_of(obj), lambda old, revision: kept(old, obj, revision=revision))

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        key, revision = Key(kind, namespace, name), str(self._table.revision + 1)
        old = self._table.find(key)
        gone = removed(old, key, expect=expect, revision=revision)
        self._table.apply(Event("DELETED", gone, revision, old))
        return gone

    def watch(self, kind: str, since: str) -> Watch:
        return self._table.watch(kind, since)

    async def snapshot(self) -> Listing:
        return self._table.everything()

    async def close(self) -> None:
        self._table.close()

    def _write(self, key: Key, decide: Decide) -> Object:
        old, revision = self._table.find(key), str(self._table.revision + 1)
        new = decide(old, revision)
        if new is not old:
            self._table.apply(Event("MODIFIED" if old else "ADDED", new, revision, old))
        return new


_: type[Store] = MemoryStore
__: type[Movable] = MemoryStore
