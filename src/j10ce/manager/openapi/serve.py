"""The OpenAPI documents at the addresses where clients look for them, each with a name for its content."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from j10ce.errors import NotFound, cut
from j10ce.http.status import Refusal
from j10ce.manager.access.roles import DISCOVERY, enter
from j10ce.manager.asgi.requests import not_allowed
from j10ce.manager.openapi import document, kubectl, swagger_wire
from j10ce.model.kinds import API_VERSION

GROUP_PATH: Final = f"apis/{API_VERSION}"
JSON: Final = "application/json"
ASKED_V2: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SENT_V2: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # a media type has no @
FOR_EVER: Final = {"cache-control": "private, immutable, max-age=31536000"}


class ApiDocument(NamedTuple):
    data: bytes
    hash: str
    media_type: str = JSON


class ApiDocuments:
    """Built when they are first asked for, and kept."""

    async def handle(self, request: Request) -> Response:
        """Whatever is below /openapi/."""
        enter("get", DISCOVERY)
        if request.method not in ("GET", "HEAD"):
            raise not_allowed(request, ("GET",))
        match request.path_params["path"]:
            case "v3":
                return _answer(request, self.index)
            case path if path == f"v3/{GROUP_PATH}":
                return self._by_hash(request, self.version3)
            case "v2":
                return _answer(request, self._negotiated(request))
            case path:
                raise NotFound(f"there is no /openapi/{cut(path)}; /openapi/v3 lists what there is")

    @cached_property
    def index(self) -> ApiDocument:
        """Every group's document, under an address that changes with it."""
        url = f"/openapi/v3/{GROUP_PATH}?hash={self.version3.hash}"
        return _body(msgspec.json.encode({"paths": {GROUP_PATH: {"serverRelativeURL": url}}}))

    @cached_property
    def version3(self) -> ApiDocument:
        return _body(msgspec.json.encode(kubectl.version3(document.document())))

    @cached_property
    def version2(self) -> ApiDocument:
        return _body(msgspec.json.encode(kubectl.version2(document.document())))

    @cached_property
    def wire2(self) -> ApiDocument:
        return _body(swagger_wire.document(msgspec.json.decode(self.version2.data)), SENT_V2)

    def _negotiated(self, request: Request) -> ApiDocument:
        asked = [part.partition(";")[0].strip() for part in request.headers.get("accept", "*/*").split(",")]
        for media_type in asked:
            if media_type in (ASKED_V2, SENT_V2):
                return self.wire2
            if media_type in (JSON, "application/*", "*/*"):
                return self.version2
        raise Refusal(406, f"/openapi/v2 is there as {JSON} and as {ASKED_V2}")

    def _by_hash(self, request: Request, body: ApiDocument) -> Response:
        wanted = request.query_params.get("hash")
        if wanted and wanted != body.hash:
            return RedirectResponse(f"{request.url.path}?hash={body.hash}", 301)
        return _answer(request, body, FOR_EVER if wanted else {})


def _body(data: bytes, media_type: str = JSON) -> ApiDocument:
    return ApiDocument(data, hashlib.sha256(data).hexdigest()[:32].upper(), media_type)


def _answer(request: Request, body: ApiDocument, headers: dict[str, str] | None = None) -> Response:
    known = {"etag": f'"{body.hash}"', "vary": "accept", **(headers or {})}
    if request.headers.get("if-none-match") == known["etag"]:
        return Response(None, 304, known)
    return Response(body.data, 200, known, body.media_type)
