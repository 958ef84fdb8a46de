"""OpenAPI 3.1 of the REST API, derived from the kinds table and the structs behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from j10ce import __version__
from j10ce.manager.access.enrolment import NodeCredential, NodeCredentialRequest
from j10ce.manager.api.dependents import DISCARD, POLICIES, DeleteOptions
from j10ce.manager.api.query import FLAGS, MOST
from j10ce.manager.asgi.requests import APPLY_PATCH, BASE, JSON_PATCH, MERGE_PATCH, MOST_MANAGER, FieldValidation
from j10ce.manager.openapi.fields import described
from j10ce.manager.openapi.shape import messages
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import PolicyRevision
from j10ce.model.placement import Placement
from j10ce.model.schema import json_schema
from j10ce.policy.document.document import NodeDocument

Json = dict[str, Any]

REFUSALS: Final = {
    400: "The request cannot be understood",
    401: "The bearer token is missing or wrong",
    403: "A foreign Host or Origin, or a rule forbids it",
    404: "No such object",
    405: "Not a verb of this resource",
    406: "Not in a form that is asked for",
    409: "The object exists already, or has moved on",
    410: "The revision is no longer kept: list again",
    413: "The body is larger than 1 MiB",
    415: "Not a content type that is read here",
    422: "The object or the query is invalid; the causes list every finding",
    429: "The caller asks too often",
    503: "The store or the agent does not answer",
    504: "The store did not answer in time: what was asked for may have happened",
}
READING: Final = (400, 401, 403, 404, 405, 406, 410, 422, 429, 503)
WRITING: Final = tuple(REFUSALS)


def document() -> Json:
    kinds = tuple(KINDS.values())
    structs: list[type[Struct]] = [*(kind.struct for kind in kinds), NodeDocument, DeleteOptions, Placement]
    structs += [NodeCredentialRequest, NodeCredential]
    _, components = json_schema(structs)
    _describe(components)
    schemas = components | {"Status": _status()} | {f"{kind.name}List": _list_of(kind) for kind in kinds}
    paths = {path: item for kind in kinds for path, item in _paths(kind).items()}
    paths |= _document_path() | _placement_path() | _enrolment_paths()
    return {
        "openapi": "3.1.0",
        "info": {"title": "j10ce-qos", "version": __version__, "description": "Quality of service for Linux workloads"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": {parameter["name"]: parameter for parameter in (*PATH_PARAMETERS, *QUERY_PARAMETERS)},
            "responses": {str(code): _refusal(text) for code, text in REFUSALS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _describe(components: Json) -> None:
    """Say of every part of every kind, and of its fields, what it means."""
    for struct in messages():
        schema = components[struct.__name__]
        schema["description"] = described(struct)
        for field in msgspec.structs.fields(struct):
            if text := described(struct, field.name):
                schema["properties"][field.encode_name]["description"] = text


def _in_path(name: str) -> Json:
    schema = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, does: str, **schema: Any) -> Json:
    return {"name": name, "in": "query", "description": does, "schema": schema or {"type": "string"}}


PATH_PARAMETERS: Final = (_in_path("namespace"), _in_path("name"))
QUERY_PARAMETERS: Final = (
    _in_query("labelSelector", "a=b,c!=d,e in (f,g),h notin (i),j,!k"),
    _in_query("fieldSelector", "metadata.name=NAME, metadata.namespace=NAMESPACE"),
    _in_query(
        "limit", "At most so many objects; the rest follows with `continue`", type="integer", minimum=0, maximum=MOST
    ),
    _in_query("continue", "Where the page before ended"),
    _in_query("watch", "Stream changes as JSON lines", enum=list(FLAGS)),
    _in_query("resourceVersion", "Watch from here, without it from the present state; 0: from memory"),
    _in_query("timeoutSeconds", "End a watch after so long", type="integer", minimum=0, maximum=MOST),
    _in_query("allowWatchBookmarks", "Say where the watch stands when nothing happens", enum=list(FLAGS)),
    _in_query("sendInitialEvents", "Whether a watch begins with the present state", enum=list(FLAGS)),
    _in_query("resourceVersionMatch", "Exact: of that revision or not at all"),
    _in_query("dryRun", "All: check and show, store nothing", enum=["All"]),
    _in_query("fieldManager", "Who owns what is written", type="string", maxLength=MOST_MANAGER),
    _in_query("fieldValidation", "What becomes of unknown fields", enum=list(get_args(FieldValidation))),
    _in_query("propagationPolicy", "Orphan: what it owns stays", enum=list(POLICIES)),
    _in_query(DISCARD, "true: delete it also where this release cannot read it", enum=list(FLAGS)),
    _in_query("force", "true: an apply takes what others own"),
    _in_query("for", "How long a placement holds the floor, such as 10m"),
    _in_query("unenforced", "allow: also nodes whose kernel cannot keep the floor", enum=["allow"]),
    _in_query("hash", "The document that the caller has already"),
    _in_query("format", "The latest format of a document that the caller reads", type="integer"),
    _in_query("changes", "Tell what is other than in the document before, where that is known", enum=list(FLAGS)),
)
WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
NOT_LISTING: Final = (
    *WRITE_PARAMETERS,
    "propagationPolicy",
    DISCARD,
    "force",
    "for",
    "unenforced",
    "hash",
    "changes",
    "format",
)
LISTING: Final = tuple(p["name"] for p in QUERY_PARAMETERS if p["name"] not in NOT_LISTING)
PATCH_BODIES: Final = {JSON_PATCH: "array", MERGE_PATCH: "object", APPLY_PATCH: "object"}


def _paths(kind: Kind) -> dict[str, Json]:
    inside = f"{BASE}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{BASE}/{kind.plural}"
    scope = ("namespace",) if kind.namespaced else ()
    paths = {f"{BASE}/{kind.plural}": {"get": _listing(kind, (), "list_all" if scope else "list")}}
    if scope:
        paths[inside] = {"get": _listing(kind, scope, "list")}
    one = (*scope, "name")
    asked = (*one, "resourceVersion") if kind.stored else one
    paths[f"{inside}/{{name}}"] = {"get": _operation("get", kind, asked, kind.name)}
    if not kind.stored:
        return paths
    paths[inside]["post"] = _operation(
        "create", kind, (*scope, *WRITE_PARAMETERS), kind.name, body=kind.name, code="201"
    )
    how = (*one, "dryRun", "propagationPolicy", DISCARD)
    paths[f"{inside}/{{name}}"] |= _changes(kind, one, "") | {
        "delete": _operation("delete", kind, how, "Status", body="DeleteOptions", optional=True)
    }
    if kind.struct is not PolicyRevision:
        status = {"get": _operation("get_status", kind, asked, kind.name)}
        paths[f"{inside}/{{name}}/status"] = status | _changes(kind, one, "_status")
    return paths


def _changes(kind: Kind, parameters: tuple[str, ...], suffix: str) -> Json:
    given = (*parameters, *WRITE_PARAMETERS)
    patch = _operation(f"patch{suffix}", kind, (*given, "force"), kind.name)
    bodies = {content: {"schema": {"type": type_}} for content, type_ in PATCH_BODIES.items()}
    patch["requestBody"] = {"required": True, "content": bodies}
    if not suffix:
        patch["responses"] |= {"201": _shows(kind.name)}  # an apply of what was not there
    return {"put": _operation(f"replace{suffix}", kind, given, kind.name, body=kind.name), "patch": patch}


def _listing(kind: Kind, scope: tuple[str, ...], verb: str) -> Json:
    return _operation(verb, kind, (*scope, *LISTING) if kind.stored else scope, f"{kind.name}List")


def _operation(
    verb: str,
    kind: Kind,
    parameters: tuple[str, ...],
    shows: str,
    *,
    body: str = "",
    code: str = "200",
    optional: bool = False,
) -> Json:
    refusals = WRITING if body or verb.startswith("patch") else READING
    operation: Json = {
        "operationId": f"{verb}_{kind.plural}",
        "tags": [kind.name],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in parameters],
        "responses": {code: _shows(shows)} | {str(c): {"$ref": f"#/components/responses/{c}"} for c in refusals},
    }
    if body:
        operation["requestBody"] = {"required": not optional, "content": _content(body)}
    return operation


def _document_path() -> dict[str, Json]:
    operation: Json = {
        "operationId": "get_nodedocument",
        "tags": ["NodeDocument"],
        "description": "What the agent of a node obeys; a watch sends it again whenever its hash moves.",
        "parameters": [
            {"$ref": f"#/components/parameters/{name}"}
            for name in ("name", "watch", "timeoutSeconds", "hash", "changes", "format")
        ],
        "responses": {"200": _shows("NodeDocument")} | _refusals(READING),
    }
    return {f"{BASE}/nodedocuments/{{name}}": {"get": operation}}


def _enrolment_paths() -> dict[str, Json]:
    issue: Json = {
        "operationId": "create_nodecredential",
        "tags": ["NodeCredential"],
        "description": "A token for a node, shown this once: with a bootstrap token, or the node's own to renew it.",
        "requestBody": {"required": True, "content": _content("NodeCredentialRequest")},
        "responses": {"201": _shows("NodeCredential")} | _refusals(WRITING),
    }
    show: Json = {
        "operationId": "get_nodecredential",
        "tags": ["NodeCredential"],
        "description": "Until when the token of a node counts.",
        "parameters": [{"$ref": "#/components/parameters/name"}],
        "responses": {"200": _shows("NodeCredential")} | _refusals(READING),
    }
    return {f"{BASE}/nodecredentials": {"post": issue}, f"{BASE}/nodecredentials/{{name}}": {"get": show}}


def _refusals(codes: Iterable[int]) -> Json:
    return {str(code): {"$ref": f"#/components/responses/{code}"} for code in codes}


def _placement_path() -> dict[str, Json]:
    operation: Json = {
        "operationId": "create_placement",
        "tags": ["Placement"],
        "description": "Choose a node for a workload and hold its floor there; `dryRun` only says what would be.",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in ("dryRun", "for", "unenforced")],
        "requestBody": {"required": True, "content": _content("Workload")},
        "responses": {"200": _shows("Placement"), "201": _shows("Placement")} | _refusals(WRITING),
    }
    return {f"{BASE}/placements": {"post": operation}}


def _content(schema: str) -> Json:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _shows(schema: str) -> Json:
    return {"description": schema, "content": _content(schema)}


def _refusal(text: str) -> Json:
    return {"description": text, "content": _content("Status")}


def _list_of(kind: Kind) -> Json:
    meta = {"type": "object", "properties": {name: {"type": "string"} for name in ("resourceVersion", "continue")}}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{kind.name}"}}
    return {"type": "object", "required": ["items"], "properties": {"metadata": meta, "items": items}}


def _status() -> Json:
    cause = {"type": "object", "properties": {name: {"type": "string"} for name in ("reason", "field", "message")}}
    details = {"type": "object", "properties": {"causes": {"type": "array", "items": cause}}}
    texts = {name: {"type": "string"} for name in ("apiVersion", "kind", "message", "reason")}
    verdict = {"status": {"enum": ["Success", "Failure"]}, "code": {"type": "integer"}, "details": details}
    return {"type": "object", "required": ["kind", "status"], "properties": texts | verdict}
