"""Reading requests and writing answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from j10ce.manager.failure import Refusal
from j10ce.model.kinds import API_VERSION

BASE: Final = f"/apis/{API_VERSION}"
MOST_BYTES: Final = 1 << 20
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_TYPES: Final = ("application/json", "")


async def read_body(request: Request, types: tuple[str, ...]) -> bytes:
    """The body, if it is of one of these content types and not too large."""
    content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise _too_large()
    except ClientDisconnect:
        raise Refusal(400, "BadRequest", "the connection broke in the middle of the body") from None
    if body and content not in types:
        wanted = " or ".join(filter(None, types))
        raise Refusal(415, "UnsupportedMediaType", f"content type {content!r} is not read here; send {wanted}")
    return bytes(body)


def is_dry(request: Request) -> bool:
    match request.query_params.get("dryRun", ""):
        case "":
            return False
        case "All":
            return True
        case other:
            raise Refusal(400, "BadRequest", f"dryRun={other!r} is not known; use All")


def json(data: bytes, code: int = 200) -> Response:
    return Response(data, code, media_type="application/json")


def not_allowed(request: Request, allowed: Iterable[str]) -> Refusal:
    methods = ", ".join(allowed)
    message = f"{request.method} is not possible on {request.url.path}; use {methods}"
    return Refusal(405, "MethodNotAllowed", message, {"allow": methods})


def _too_large() -> Refusal:
    # The rest of the body is not read, so the connection cannot be used again.
    message = f"the body is larger than {MOST_BYTES} bytes"
    return Refusal(413, "RequestEntityTooLarge", message, {"connection": "close"})
