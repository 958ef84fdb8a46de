"""The verbs of one kind as gRPC calls, over the same `Verbs` as the REST half."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.errors import Finding, Invalid
from j10ce.manager.access.roles import enter
from j10ce.manager.api import query
from j10ce.manager.api.dependents import DeleteOptions, Preconditions, read_options
from j10ce.manager.api.verbs import Author, Verbs
from j10ce.manager.asgi.requests import checked_manager
from j10ce.manager.grpc.codec import list_meta, message_of, plain_of, serialised
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.proto import requests_pb2, services_pb2
from j10ce.manager.grpc.visit import Visit
from j10ce.manager.grpc.watch import send_all, watched
from j10ce.manager.identity import Verb, current
from j10ce.manager.openapi import shape
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.schema import encode
from j10ce.model.stored import Event, Key, Part
from j10ce.policy.validation import syntax


class Call(NamedTuple):
    """One row of every service: which right it takes, its request (`{}` is the kind), and who answers."""

    verb: Verb
    request: str
    answer: Callable[[Calls, Any, Key], Awaitable[Any]]
    part: Part = "spec"


class Calls:
    """`stop` ends the watches, so that the server can stop."""

    def __init__(self, kind: Kind, verbs: Verbs, door: Door, stop: asyncio.Event) -> None:
        self._kind, self._verbs, self._door, self._stop = kind, verbs, door, stop
        self._page = getattr(services_pb2, f"{kind.name}List")
        self._event = getattr(services_pb2, f"{kind.name}Event")

    def handlers(self) -> dict[str, Any]:
        every = {name: call for name, call in CALLS.items() if call.part == "spec" or shape.has_status(self._kind)}
        watch = self._door.watch(f"{self._kind.name}/Watch", self.watch)
        return {name: self._unary(name, call) for name, call in every.items()} | {"Watch": watch}

    async def get(self, request: Any, key: Key) -> Any:
        return message_of(await self._verbs.get(key, request.resource_version))

    async def list(self, request: Any, key: Key) -> Any:
        more = {"continue": request.continue_token, "resourceVersion": request.resource_version}
        asked = query.read(_parameters(request, limit=request.limit, **more), self._kind)
        page = await self._verbs.list(self._kind, key.namespace or None, asked)
        parts = await self._verbs.spelled(page.items, self._part)
        return serialised(self._page(metadata=list_meta(page))) + b"".join(parts)

    def _part(self, some: Sequence[Object]) -> bytes:
        """Of a page: serialised messages one after the other are one with the items of all."""
        return serialised(self._page(items=map(message_of, some)))

    async def create(self, request: Any, key: Key) -> Any:
        made = await self._verbs.create(self._kind, key.namespace, self._body(request), **_options(request))
        return message_of(made)

    async def update(self, request: Any, key: Key, part: Part = "spec") -> Any:
        done = await self._verbs.replace(self._kind, key, part, self._body(request), **_options(request))
        return message_of(done)

    async def update_status(self, request: Any, key: Key) -> Any:
        return await self.update(request, key, "status")

    async def patch(self, request: Any, key: Key, part: Part = "spec") -> Any:
        by_type = {requests_pb2.PATCH_TYPE_JSON: self._verbs.patch_json}
        patch = by_type.get(request.type, self._verbs.patch)
        return message_of(await patch(self._kind, key, part, request.patch.encode(), **_options(request)))

    async def patch_status(self, request: Any, key: Key) -> Any:
        return await self.patch(request, key, "status")

    async def apply(self, request: Any, key: Key, part: Part = "spec") -> Any:
        if not request.field_manager:
            hint = "it will own the fields that are applied"
            raise Invalid([Finding("fieldManager", None, "missing", hint)], f"apply of {key}")
        body = self._body(request, whole=False)
        done, _ = await self._verbs.apply(self._kind, key, part, body, force=request.force, **_options(request))
        return message_of(done)

    async def apply_status(self, request: Any, key: Key) -> Any:
        return await self.apply(request, key, "status")

    async def delete(self, request: Any, key: Key) -> Any:
        wanted = request.preconditions
        options = DeleteOptions(preconditions=Preconditions(uid=wanted.uid, resource_version=wanted.resource_version))
        checked = read_options(encode(options))  # by the bounds that every client has
        return message_of(await self._verbs.delete(key, checked, dry=request.dry_run))

    async def watch(self, visit: Visit) -> None:
        request = await visit.read(requests_pb2.WatchRequest)
        key = self._key("watch", request)
        enter("watch", *key)
        asked = query.read(_parameters(request, resourceVersion=request.resource_version), self._kind)
        events = watched(self._verbs, self._kind, key.namespace or None, asked)
        await send_all(self._messages(events, bookmarks=request.bookmarks), visit, self._stop)

    async def _messages(self, events: AsyncIterator[Event | str], *, bookmarks: bool) -> AsyncGenerator[Any]:
        lines = self._verbs.lines
        async for event in events:
            if isinstance(event, str) or not lines.is_large(event.object):
                yield self._shown(event, bookmarks=bookmarks)
                continue
            async with lines.room(event.object):
                yield self._shown(event, bookmarks=bookmarks)

    def _shown(self, event: Event | str, *, bookmarks: bool) -> Any:
        if isinstance(event, str):
            return self._event(type="EVENT_TYPE_BOOKMARK", resource_version=event) if bookmarks else None
        type_, shown = f"EVENT_TYPE_{event.type}", message_of(event.object)
        return self._event(type=type_, object=shown, resource_version=event.revision)

    def _body(self, request: Any, *, whole: bool = True) -> bytes:
        plain = plain_of(request.object, self._kind.struct, whole=whole)
        return msgspec.json.encode({**plain, "apiVersion": API_VERSION, "kind": self._kind.name})

    def _key(self, verb: Verb, request: Any) -> Key:
        """What a request is about; raises Invalid for a name or a namespace that nothing can have."""
        names = request.object.metadata if hasattr(request, "object") else request
        key = Key(self._kind.name, names.namespace, getattr(names, "name", ""))
        where = "metadata." if hasattr(request, "object") else ""
        if findings := [*self._misnamed(verb, key, where)]:
            raise Invalid(findings, f"{verb} {key.kind}")
        return key

    def _misnamed(self, verb: Verb, key: Key, where: str) -> Iterator[Finding]:
        many = verb in ("list", "watch")
        if key.namespace and not self._kind.namespaced:
            yield Finding(f"{where}namespace", key.namespace, f"a {key.kind} has no namespace", "remove it")
        elif key.namespace:
            yield from syntax.namespace(f"{where}namespace", key.namespace)
        elif self._kind.namespaced and not many:
            yield Finding(f"{where}namespace", None, "missing", f"a {key.kind} has one, such as default")
        if not many and verb != "create":  # a created one is checked as a whole
            yield from syntax.name(f"{where}name", key.name)

    def _unary(self, name: str, call: Call) -> Any:
        wanted = call.request.format(self._kind.name)
        request = getattr(requests_pb2, wanted, None) or getattr(services_pb2, wanted)

        async def answer(given: Any) -> Any:
            key = self._key(call.verb, given)
            enter(call.verb, *key, part=call.part)
            return await call.answer(self, given, key)

        return self._door.unary(f"{self._kind.name}/{name}", request, answer)


CALLS: Final = {
    "Get": Call("get", "GetRequest", Calls.get),
    "List": Call("list", "ListRequest", Calls.list),
    "Create": Call("create", "Create{}Request", Calls.create),
    "Update": Call("update", "Update{}Request", Calls.update),
    "Patch": Call("patch", "PatchRequest", Calls.patch),
    "Apply": Call("patch", "Apply{}Request", Calls.apply),
    "Delete": Call("delete", "DeleteRequest", Calls.delete),
    "UpdateStatus": Call("update", "Update{}Request", Calls.update_status, "status"),
    "PatchStatus": Call("patch", "PatchRequest", Calls.patch_status, "status"),
    "ApplyStatus": Call("patch", "Apply{}Request", Calls.apply_status, "status"),
}


def _parameters(request: Any, **more: object) -> dict[str, str]:
    """As the query of a URL, so that both front ends read it alike."""
    given = {"labelSelector": request.label_selector, "fieldSelector": request.field_selector, **more}
    return {name: str(value) for name, value in given.items()}


def _options(request: Any) -> dict[str, Any]:
    """What every write may carry."""
    return {"dry": request.dry_run, "by": Author(checked_manager(request.field_manager or current().caller.name))}
