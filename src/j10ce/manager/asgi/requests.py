"""Reading requests and writing answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from j10ce.errors import shown
from j10ce.http.status import Refusal
from j10ce.manager.identity import Caller, Role, current
from j10ce.model.bounds import MOST_REPORT
from j10ce.model.kinds import API_VERSION

BASE: Final = f"/apis/{API_VERSION}"
MOST_BYTES: Final = 1 << 20
LARGE: Final = 64 << 10  # bytes of an answer that a connection does not take at once
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
JSON_TYPES: Final = ("application/json", "")
MOST_MANAGER: Final = 128  # characters of a field manager's name
FieldValidation = Literal["Strict", "Warn", "Ignore"]


class WriteOptions(NamedTuple):
    """What the query of a write says."""

    dry: bool = False
    manager: str = "unknown"  # who owns what is written
    force: bool = False  # an apply takes what others own
    validation: FieldValidation = "Strict"  # what becomes of fields that nobody knows


def options(request: Request) -> WriteOptions:
    """Raises Refusal."""
    if not request.scope["query_string"]:
        return WriteOptions(manager=_agent(request))
    params = request.query_params
    validation = params.get("fieldValidation") or "Strict"
    if validation not in get_args(FieldValidation):
        raise Refusal(400, f"fieldValidation={shown(validation)} is not known; use Strict, Warn or Ignore")
    manager = checked_manager(params.get("fieldManager") or _agent(request))
    force = params.get("force") in ("1", "true")
    return WriteOptions(is_dry(request), manager, force, cast(FieldValidation, validation))


def checked_manager(name: str) -> str:
    if len(name) > MOST_MANAGER or not name.isprintable():
        raise Refusal(400, f"fieldManager must be at most {MOST_MANAGER} printable characters")
    return name


def header(request: Request, name: bytes, default: str = "") -> str:
    """The first of this name, which is given in lower case."""
    value = headers(request.scope).get(name)
    return default if value is None else str(value, "latin-1")


def headers(scope: Scope) -> dict[bytes, bytes]:
    """By name; the first of each name counts. Made once per request: several look at them."""
    by_name: dict[bytes, bytes] | None = scope.get("j10ce.headers")
    if by_name is None:
        by_name = scope["j10ce.headers"] = dict(reversed(scope["headers"]))
    return by_name


def _agent(request: Request) -> str:
    """`kubectl` of `kubectl/v1.36.4 (linux/amd64)`, as Kubernetes names a writer that gives no name."""
    name = header(request, b"user-agent").partition("/")[0][:MOST_MANAGER]
    return name if name and name.isprintable() else "unknown"


def content_type(request: Request) -> str:
    return header(request, b"content-type").partition(";")[0].strip().lower()


async def read_body(request: Request, types: tuple[str, ...]) -> bytes:
    """The body, if it is of one of these content types and not too large for its sender."""
    content, most = content_type(request), most_bytes(current().caller)
    length = header(request, b"content-length")
    if length.isdecimal() and (len(length) > 9 or int(length) > most):
        raise _too_large(most)
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the connection broke in the middle of the body")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_large(most)
    if body and content not in types:
        raise unread(types)
    return bytes(body)


def unread(types: Iterable[str]) -> Refusal:
    """In Kubernetes' own words: kubectl prints them."""
    accepted = ", ".join(filter(None, types))
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return Refusal(415, message)


def is_dry(request: Request) -> bool:
    match request.query_params.get("dryRun", ""):
        case "":
            return False
        case "All":
            return True
        case other:
            raise Refusal(400, f"dryRun={shown(other)} is not known; use All")


class Json(Response):
    """Nearly every answer: made without looking through headers that nobody gave."""

    def __init__(self, data: bytes, code: int) -> None:
        self.status_code, self.body, self.background = code, data, None
        self.raw_headers = [(b"content-length", b"%d" % len(data)), (b"content-type", b"application/json")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if len(self.body) > LARGE:  # open until its reader has taken it, as the next `send` waits for that
            body, self.body = bytes(self.body), b""  # bytes are themselves: no copy
            await _send_pieces(deque([body]), send)
        await send({"type": "http.response.body", "body": self.body})


class JsonParts(Response):
    """A long answer in parts that others share: one that nobody reads takes a piece of memory, not its size."""

    def __init__(self, parts: deque[bytes], size: int) -> None:
        self.status_code, self.background, self._parts = 200, None, parts
        self.raw_headers = [(b"content-length", b"%d" % size), (b"content-type", b"application/json")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await _send_pieces(self._parts, send)
        await send({"type": "http.response.body", "body": b""})


async def _send_pieces(parts: deque[bytes], send: Send) -> None:
    """Each is joined when its reader has taken the one before it; what was taken is let go."""
    rest = memoryview(b"")  # of the part that is being sent: no copy of it
    while parts or rest:
        piece, size = [], 0
        while (parts or rest) and size < LARGE:
            rest = rest or memoryview(parts.popleft())
            piece.append(rest[: LARGE - size])
            size, rest = size + len(piece[-1]), rest[LARGE - size :]
        await send({"type": "http.response.body", "body": b"".join(piece), "more_body": True})
        await asyncio.sleep(0)  # a reader that is as fast as we are must not keep others waiting


def json_of(parts: deque[bytes]) -> Response:
    """200, with what these parts are together."""
    size = sum(map(len, parts))
    return json(b"".join(parts)) if size <= LARGE else JsonParts(parts, size)


def json(data: bytes, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    response = Json(data, code)
    for text in warnings:
        # A header holds printable ASCII; a client's own field name may hold anything.
        printable = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
        quoted = printable.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("warning", f'299 - "{quoted}"')
    return response


def not_allowed(request: Request, allowed: Iterable[str]) -> Refusal:
    methods = ", ".join(allowed)
    message = f"{request.method} is not possible on {request.url.path}; use {methods}"
    return Refusal(405, message, {"allow": methods})


def most_bytes(caller: Caller) -> int:
    """Of one request."""
    return MOST_REPORT if caller.role is Role.NODE else MOST_BYTES


def _too_large(most: int) -> Refusal:
    # The rest of the body is not read, so the connection cannot be used again.
    message = f"the body is larger than {most} bytes"
    return Refusal(413, message, {"connection": "close"})
