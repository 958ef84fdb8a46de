"""The API Server's REST half: the kinds table, Kubernetes' verbs and conventions, Starlette underneath."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from j10ce.errors import Compacted, NotFound, cut
from j10ce.http.status import Refusal
from j10ce.manager.access.roles import DOCUMENT as NODE_DOCUMENT
from j10ce.manager.access.roles import enter
from j10ce.manager.api import query
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.dependents import asked, read_options
from j10ce.manager.api.document_watch import document_lines, in_pieces
from j10ce.manager.api.forms import Encoded, Form, choose, whole
from j10ce.manager.api.stream import Stream
from j10ce.manager.api.verbs import Author, Page, Verbs, page
from j10ce.manager.api.watch import ObjectWatch
from j10ce.manager.asgi import requests
from j10ce.manager.asgi.requests import (
    BASE,
    JSON_TYPES,
    PATCHES,
    WriteOptions,
    content_type,
    header,
    is_dry,
    json,
    json_of,
    not_allowed,
    options,
    read_body,
)
from j10ce.manager.documents.view import View
from j10ce.manager.identity import Verb
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import GROUP, Object, PolicyRevision
from j10ce.model.stored import Event, Key, Part, Unreadable
from j10ce.policy.document.document import FORMAT

NAME: Final = "[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
PATH: Final = re.compile(
    f"(?:namespaces/(?P<namespace>{NAME})/)?(?P<plural>[a-z]+)(?:/(?P<name>{NAME})(?P<status>/status)?)?"
)
DOCUMENT: Final = re.compile(f"nodedocuments/(?P<node>{NAME})")
PLAIN: Final = ("*/*", "application/json")  # asked for by all who want no other form
PLURALS: Final = {kind.plural: kind for kind in KINDS.values()}
Endpoint = Callable[["ResourceRoutes", Request, "Address"], Awaitable[ASGIApp]]


class Address(NamedTuple):
    """What a path below the group's version names."""

    kind: Kind
    namespace: str | None  # None: all namespaces, or a kind without
    name: str = ""
    part: Part = "spec"

    @property
    def key(self) -> Key:
        return Key(self.kind.name, self.namespace or "", self.name)


@lru_cache(4096)  # clients ask for the same again and again
def address(path: str) -> Address:
    """`[namespaces/NS/]PLURAL[/NAME[/status]]`; raises NotFound."""
    matched = PATH.fullmatch(path)
    kind = PLURALS.get(matched["plural"]) if matched else None
    if matched is None or kind is None:
        raise NotFound(f"there is no {BASE}/{cut(path)}; {BASE} lists what there is")
    at = Address(kind, matched["namespace"], matched["name"] or "", "status" if matched["status"] else "spec")
    in_scope = (at.namespace is not None) == kind.namespaced or (at.namespace is None and not at.name)
    if not in_scope or (at.part == "status" and kind.struct is PolicyRevision):
        raise NotFound(f"there is no {BASE}/{path}; {BASE} says what has namespaces and what has a status")
    return at


class ResourceRoutes:
    """Every request below the group's version."""

    def __init__(self, verbs: Verbs, view: View, agent: AgentProxy, stop: asyncio.Event) -> None:
        self._verbs, self._view, self._agent, self._stop = verbs, view, agent, stop
        self._encoded = Encoded()

    async def route(self, request: Request) -> Response:
        """As a Route wants it. The Response is any ASGI application: a watch is one, too."""
        return await self.handle(request, request.path_params["path"])  # type: ignore[return-value]

    async def handle(self, request: Request, path: str) -> ASGIApp:
        if path.startswith("nodedocuments/") and (document := DOCUMENT.fullmatch(path)):
            enter(_verb(request, document["node"]), NODE_DOCUMENT, name=document["node"])
            return await self.document(request, document["node"])
        at = address(path)
        enter(_verb(request, at.name), at.kind.name, at.namespace or "", at.name, at.part)
        if not at.kind.stored:
            return await self.foreign(request, at)
        endpoints = ON_OBJECT if at.name else ON_COLLECTION
        endpoint = endpoints.get(request.method)
        if endpoint is None:
            raise not_allowed(request, endpoints)
        return await endpoint(self, request, at)

    async def document(self, request: Request, node: str) -> ASGIApp:
        if request.method != "GET":
            raise not_allowed(request, ("GET",))
        asked = query.read(request.query_params)
        if asked.watch:
            known, large = request.query_params.get("hash", ""), self._verbs.lines
            # Agents watch, and those that do not say what they read came before there was anything to say.
            format_ = asked.format or FORMAT - 1
            lines = document_lines(self._view, node, known, large, changes=asked.changes, format_=format_)
            return Stream(in_pieces(lines), self._stop, asked.timeout_s)
        return json((await self._view.document(node, asked.format or FORMAT)).data)

    async def foreign(self, request: Request, at: Address) -> ASGIApp:
        if request.method != "GET":
            raise not_allowed(request, ("GET",))
        if request.query_params.get("watch"):
            raise Refusal(405, f"{at.kind.plural} cannot be watched; list them")
        asked, form = query.read(request.query_params, at.kind), self._form(request, at.kind)
        where = [*(("namespaces", at.namespace) if at.namespace else ()), at.kind.plural, at.name]
        path = f"{BASE}/" + "/".join(quote(step) for step in where if step)
        if at.name:
            return json(whole(form, await self._agent.object(path, at.kind)))
        listing = await self._agent.list(path, at.kind)
        return await self._paged(form, at.kind, await page(listing, asked, self._verbs.slices))

    async def list(self, request: Request, at: Address) -> ASGIApp:
        asked, form = query.read(request.query_params, at.kind), self._form(request, at.kind)
        if asked.watch:
            return await self.watch(at, asked, form)
        listed = await self._verbs.list(at.kind, at.namespace, asked)
        _refuse_future(asked.since, listed.revision)
        if asked.exact and asked.since != listed.revision:
            raise Compacted(f"the objects of revision {cut(asked.since)} are not kept, only those of {listed.revision}")
        return await self._paged(form, at.kind, listed)

    async def _paged(self, form: Form, kind: Kind, listed: Page) -> ASGIApp:
        before, after = form.page(kind, listed)
        made = await self._verbs.spelled(listed.items, form.items)
        parts = deque(chain.from_iterable(made))
        if parts:
            parts.popleft()  # the comma before the first
        parts.appendleft(before)
        parts.append(after)
        return json_of(parts)

    async def watch(self, at: Address, asked: query.Query, form: Form) -> ASGIApp:
        asked = asked.within(at.namespace)
        first: tuple[Event, ...] = ()
        since = asked.since
        if asked.initial or since in ("", query.ANY_REVISION):
            listing = await self._verbs.list(at.kind, at.namespace, asked._replace(limit=0, position=None))
            shown = () if asked.initial is False else listing.items
            first = tuple(Event("ADDED", obj, obj.metadata.resource_version) for obj in shown)
            since = listing.revision
        events = self._verbs.store.watch(at.kind.name, since)
        watched = ObjectWatch(at.kind, asked, form, first, events, since, self._verbs.lines)
        return Stream(watched.lines(), self._stop, asked.timeout_s)

    async def get(self, request: Request, at: Address) -> ASGIApp:
        if not request.scope["query_string"]:
            return json(whole(self._form(request, at.kind), await self._verbs.get(at.key)))
        asked = query.read(request.query_params, at.kind)
        if asked.watch:  # of this one object, as of a list that selects it
            one = asked._replace(fields=(*asked.fields, query.FieldTerm(query.NAME, at.name)))
            return await self.watch(at, one, self._form(request, at.kind))
        obj = await self._verbs.get(at.key, asked.since)
        if int(asked.since or 0) > int(obj.metadata.resource_version):
            there = await self._verbs.list(at.kind, at.namespace, asked._replace(limit=1))
            _refuse_future(asked.since, there.revision)
        return json(whole(self._form(request, at.kind), obj))

    async def create(self, request: Request, at: Address) -> ASGIApp:
        if at.kind.namespaced and at.namespace is None:
            raise not_allowed(request, ("GET",))
        how, body = options(request), await read_body(request, JSON_TYPES)
        by = _author(how)
        made = await self._verbs.create(at.kind, at.namespace or "", body, dry=how.dry, by=by)
        return self._shown(request, at, made, how, by, 201)

    async def replace(self, request: Request, at: Address) -> ASGIApp:
        how, body = options(request), await read_body(request, JSON_TYPES)
        by = _author(how)
        changed = await self._verbs.replace(at.kind, at.key, at.part, body, dry=how.dry, by=by)
        return self._shown(request, at, changed, how, by)

    async def patch(self, request: Request, at: Address) -> ASGIApp:
        how, content, body = options(request), content_type(request), await read_body(request, PATCHES)
        by = _author(how)
        match content:
            case requests.APPLY_PATCH:
                if not request.query_params.get("fieldManager"):
                    raise Refusal(400, "fieldManager is required to apply: it will own the fields")
                done, made = await self._verbs.apply(
                    at.kind, at.key, at.part, body, by=by, force=how.force, dry=how.dry
                )
                return self._shown(request, at, done, how, by, 201 if made else 200)
            case requests.JSON_PATCH:
                changed = await self._verbs.patch_json(at.kind, at.key, at.part, body, dry=how.dry, by=by)
            case requests.MERGE_PATCH:
                changed = await self._verbs.patch(at.kind, at.key, at.part, body, dry=how.dry, by=by)
            case _:
                raise requests.unread(PATCHES)
        return self._shown(request, at, changed, how, by)

    async def delete(self, request: Request, at: Address) -> ASGIApp:
        if at.part == "status":
            raise not_allowed(request, ("GET", "PUT", "PATCH"))
        body = await read_body(request, JSON_TYPES)
        how, dry = asked(request.query_params), is_dry(request)
        if body:
            how = read_options(body)
        details = {"name": at.name, "group": GROUP, "kind": at.kind.plural}
        try:
            details["uid"] = (await self._verbs.delete(at.key, how, dry=dry)).metadata.uid
        except Unreadable:
            if not how.discards or dry:
                raise
            await self._verbs.discard(at.key)
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json(msgspec.json.encode(success))

    def _form(self, request: Request, kind: Kind) -> Form:
        accept = header(request, b"accept", "*/*")
        if accept in PLAIN:
            return self._encoded
        return choose(accept, request.query_params.get("includeObject", ""), kind, self._verbs.wall, self._encoded)

    def _shown(
        self, request: Request, at: Address, obj: Object, how: WriteOptions, by: Author, code: int = 200
    ) -> Response:
        # What a dry run shows was never stored, so its bytes must not be kept under the revision that is.
        data = whole(self._form(request, at.kind), obj, kept=not how.dry)
        warnings = by.strays if how.validation == "Warn" else None
        return json(data, code, [f'{stray.problem} "{cut(stray.path)}"' for stray in warnings or ()])


def _refuse_future(since: str, revision: str) -> None:
    """Kubernetes waits for it, for a while, and says this."""
    if since and int(since) > int(revision):
        ahead = f"too large resource version: {cut(since)}, current: {revision}"
        raise Refusal(504, ahead, {"retry-after": "1"})


def _author(how: WriteOptions) -> Author:
    return Author(how.manager, None if how.validation == "Strict" else [])


def _verb(request: Request, name: str) -> Verb:
    if request.method in WRITING:
        return WRITING[request.method]
    # As the query says it once it is decoded: a watch is counted and allowed as one, however it is spelled.
    if request.scope["query_string"] and request.query_params.get("watch") in ("1", "true"):
        return "watch"
    return "get" if name else "list"


WRITING: Final[dict[str, Verb]] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
ON_COLLECTION: Final[dict[str, Endpoint]] = {"GET": ResourceRoutes.list, "POST": ResourceRoutes.create}
ON_OBJECT: Final[dict[str, Endpoint]] = {
    "GET": ResourceRoutes.get,
    "PUT": ResourceRoutes.replace,
    "PATCH": ResourceRoutes.patch,
    "DELETE": ResourceRoutes.delete,
}
