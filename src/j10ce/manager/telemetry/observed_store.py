"""The store, watched from outside: how long it takes, how it fails, and for which request it writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from time import perf_counter
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.errors import Compacted, Conflict, Denied, NotFound, StoreError
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Silent, Span, Tracer
from j10ce.model.kinds import TRACE_ANNOTATION, Hold, Object, Policy
from j10ce.model.stored import Event, Key, Listing, Part, Unreadable, key_of
from j10ce.store.store import ANY, Discarding, Expect, Filling, Store

log = structlog.get_logger()
ANSWERS: Final = (NotFound, Conflict, Compacted, Unreadable)  # the store works, and says no
READS: Final = ("get", "list")


class ObservedStore:
    """`trouble` is what a read last failed with, empty since one was answered. A read goes to the store, not to memory,
    wherever other processes write to it.

    `refused` is what the store does not let us do, by operation and kind, until it does: `get Pod`.
    """

    def __init__(self, store: Store, metrics: Metrics, tracer: Tracer) -> None:
        self._store, self.metrics, self._tracer = store, metrics, tracer
        # How full the store is, from 0 to 1. Found out once: to ask a protocol takes longer than to create an object.
        self.fullness: Callable[[], float] = store.fullness if isinstance(store, Filling) else float
        self.trouble = ""
        self._refused: dict[tuple[str, str], str] = {}

    @property
    def refused(self) -> Mapping[str, str]:
        return {f"{operation} {kind}": why for (operation, kind), why in self._refused.items()}

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        with Measured(self, "get", kind):
            return await self._store.get(kind, namespace, name)

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        with Measured(self, "list", kind):
            return await self._store.list(kind, namespace)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        with Measured(self, "put", obj.kind):
            if isinstance(self._tracer, Silent):
                return await self._store.put(obj, expect=expect, part=part)
            about = {"j10ce.kind": obj.kind, "j10ce.namespace": obj.metadata.namespace, "j10ce.name": obj.metadata.name}
            with self._tracer.step("store.put", about) as span:
                if span.trace and part == "spec":
                    obj = await self._marked(obj, span)
                return await self._store.put(obj, expect=expect, part=part)

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        facts = {"j10ce.kind": kind, "j10ce.namespace": namespace, "j10ce.name": name}
        with Measured(self, "delete", kind), self._tracer.step("store.delete", facts):
            return await self._store.delete(kind, namespace, name, expect=expect)

    async def discard(self, kind: str, namespace: str, name: str) -> None:
        if not isinstance(self._store, Discarding):
            raise NotFound(f"{Key(kind, namespace, name)}: this store has nothing that cannot be read")
        with Measured(self, "delete", kind):
            await self._store.discard(kind, namespace, name)

    def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        return self._store.watch(kind, since)

    async def close(self) -> None:
        await self._store.close()

    async def _marked(self, obj: Object, span: Span) -> Object:
        """A spec that changes says for which request it did; agents pass it on with what they make of it.

        A put that changes nothing must go on to change nothing.
        """
        if not isinstance(obj, Policy | Hold):
            return obj
        try:
            old = await self._store.get(*key_of(obj))
        except NotFound:
            old = None
        if isinstance(old, type(obj)) and old.spec == obj.spec:
            return obj
        annotations = {**obj.metadata.annotations, TRACE_ANNOTATION: span.trace}
        return replace(obj, metadata=replace(obj.metadata, annotations=annotations))

    def answered(self, operation: str, kind: str, error: BaseException | None, took_s: float) -> None:
        self.metrics.store_answered(operation, took_s)
        if error is not None and not isinstance(error, StoreError | Denied):
            return  # cancelled, or a mistake in what was asked: it says nothing about the store
        failed = isinstance(error, StoreError) and not isinstance(error, ANSWERS)
        if failed or isinstance(error, Denied):
            self.metrics.store_failed(operation, type(error).__name__)
        if operation in READS:
            self.trouble = str(error) if failed else ""
        if not failed:
            self._note_right(operation, kind, str(error) if isinstance(error, Denied) else "")

    def _note_right(self, operation: str, kind: str, refusal: str) -> None:
        if bool(refusal) == ((operation, kind) in self._refused):
            return
        self.metrics.store_refused(operation, kind, refused=bool(refusal))
        if refusal:
            self._refused[operation, kind] = refusal
            log.error("right.lose", operation=operation, kind=kind, error=refusal)
        else:
            del self._refused[operation, kind]
            log.info("right.regain", operation=operation, kind=kind)


_: type[Store] = ObservedStore
__: type[Discarding] = ObservedStore


class Measured:
    """Around one call of the store."""

    __slots__ = ("_began", "_kind", "_operation", "_seen")

    def __init__(self, seen: ObservedStore, operation: str, kind: str) -> None:
        self._seen, self._operation, self._kind = seen, operation, kind

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._seen.answered(self._operation, self._kind, error, perf_counter() - self._began)
