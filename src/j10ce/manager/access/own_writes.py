"""What the manager writes beside the request that it was asked for, audited like any caller's write.

What the leader writes by itself is the manager's own deed, and never stopped by the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from j10ce.errors import QosError
from j10ce.http.status import CUT_OFF, answer_to
from j10ce.manager.access.audit import Audit
from j10ce.manager.identity import SYSTEM, Act, Caller, Verb, current
from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Listing, Part, key_of
from j10ce.store.store import ABSENT, ANY, Expect, Store


def the_manager() -> tuple[Caller, str]:
    return SYSTEM, ""


def whoever_asks() -> tuple[Caller, str]:
    return current().caller, current().source


class AuditedStore:
    """The store as keepers get it. Status is left out, as the reports of nodes are: it is in the objects."""

    def __init__(self, store: Store, audit: Audit, who: Callable[[], tuple[Caller, str]] = the_manager) -> None:
        self._store, self._audit, self._who = store, audit, who

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        return await self._store.get(kind, namespace, name)

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        return await self._store.list(kind, namespace)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        if part == "status" or not self._audit.kept:
            return await self._store.put(obj, expect=expect, part=part)
        with self._audited("create" if expect is ABSENT else "update", key_of(obj)) as act:
            act.after = obj
            return await self._store.put(obj, expect=expect, part=part)

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        with self._audited("delete", Key(kind, namespace, name)) as act:
            act.before = await self._store.delete(kind, namespace, name, expect=expect)
            return act.before

    def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        return self._store.watch(kind, since)

    async def close(self) -> None:
        await self._store.close()

    @contextmanager
    def _audited(self, verb: Verb, key: Key) -> Iterator[Act]:
        act, code = Act(*self._who(), announce=self._audit.intend), CUT_OFF
        act.verb, (act.kind, act.namespace, act.name) = verb, key
        act.announce()
        try:
            yield act
            code = 200
        except QosError as e:
            code = answer_to(e).code
            raise
        finally:
            self._audit.record(act, code)


_: type[Store] = AuditedStore
