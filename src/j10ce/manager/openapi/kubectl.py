"""The API in the dialects that kubectl reads, made of the 3.1 document: OpenAPI 3.0 and Swagger 2.0.

Both name a kind's schema and its operations by group, version and kind: that is how `explain`, validation and dry runs
find what belongs to an object.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import GROUP, VERSION

Json = dict[str, Any]

NAME: Final = "io.j10ce.v1alpha1."
GVK: Final = "x-kubernetes-group-version-kind"
ACTION: Final = "x-kubernetes-action"
ACTIONS: Final = {"get": "get", "put": "put", "post": "post", "patch": "patch", "delete": "delete"}
COMPONENT: Final = "#/components/schemas/"
PLAIN: Final = ("description", "type", "format", "enum", "default", "pattern", "minimum", "maximum", "required")
PRIMITIVES: Final = ("type", "enum", "minimum", "maximum", "pattern")


class Dialect(NamedTuple):
    ref: str  # where schemas stand
    wraps: bool  # a reference stands alone, so that its description needs an allOf around it


V3: Final = Dialect(COMPONENT + NAME, wraps=True)
V2: Final = Dialect("#/definitions/" + NAME, wraps=False)


def version3(document: Json) -> Json:
    """OpenAPI 3.0: no lists of types, no constants, parameters where they are used."""
    components = document["components"]
    return {
        "openapi": "3.0.0",
        "info": document["info"],
        "paths": {
            path: {method: _operation3(method, operation, document) for method, operation in item.items()}
            for path, item in _kinds_paths(document).items()
        },
        "components": {
            "schemas": _schemas(document, V3),
            "securitySchemes": components["securitySchemes"],
        },
        "security": document["security"],
    }


def version2(document: Json) -> Json:
    """Swagger 2.0, as far as a client looks: definitions, and the parameters of every operation."""
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {
            path: {method: _operation2(method, operation, document) for method, operation in item.items()}
            for path, item in _kinds_paths(document).items()
        },
        "definitions": _schemas(document, V2),
    }


def _kinds_paths(document: Json) -> dict[str, Json]:
    """What is no object is of no use to kubectl."""
    return {path: item for path, item in document["paths"].items() if _kind(item) in KINDS}


def _kind(item: Json) -> str:
    tag: str = next(iter(item.values()))["tags"][0]
    return tag


def _schemas(document: Json, dialect: Dialect) -> dict[str, Json]:
    return {NAME + name: _top(name, schema, dialect) for name, schema in document["components"]["schemas"].items()}


def _top(name: str, schema: Json, dialect: Dialect) -> Json:
    made = _lowered(schema, dialect)
    kind = name if name in KINDS else name.removesuffix("List")
    if kind in KINDS:
        made[GVK] = [_gvk(name)]
    return made


def _gvk(kind: str) -> Json:
    return {"group": GROUP, "kind": kind, "version": VERSION}


def _lowered(schema: Json, dialect: Dialect) -> Json:
    """Without what only 3.1 knows."""
    if name := schema.get("$ref", ""):
        target = {"$ref": dialect.ref + name.removeprefix(COMPONENT)}
        said: Json = {key: schema[key] for key in ("description", "default") if key in schema}
        return {"allOf": [target], **said} if dialect.wraps and said else target | _without(said, "default")
    made: Json = {key: schema[key] for key in PLAIN if key in schema}
    if isinstance(made.get("type"), list):
        # A quantity may be a number, too; kubectl takes any plain value for a string.
        made = _without(made, "minimum") | {"type": "string"}
    elif "enum" in made:
        made["type"] = "string"
    if made.get("required") == []:
        del made["required"]
    if "items" in schema:
        made["items"] = _lowered(schema["items"], dialect)
    if "properties" in schema:
        made["properties"] = {name: _lowered(below, dialect) for name, below in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _lowered(schema["additionalProperties"], dialect)
    return made


def _without(mapping: Json, key: str) -> Json:
    return {name: value for name, value in mapping.items() if name != key}


def _operation3(method: str, operation: Json, document: Json) -> Json:
    made = {"operationId": operation["operationId"], "tags": operation["tags"]}
    made["parameters"] = [_parameter(given, document) for given in operation["parameters"]]
    if body := operation.get("requestBody"):
        made["requestBody"] = body | {"content": _contents(body["content"])}
    shown = ((code, _resolved(answer, document)) for code, answer in operation["responses"].items())
    made["responses"] = {code: answer | {"content": _contents(answer["content"])} for code, answer in shown}
    return made | _marks(method, operation)


def _contents(contents: Json) -> Json:
    return {kind: {"schema": _lowered(content["schema"], V3)} for kind, content in contents.items()}


def _parameter(given: Json, document: Json) -> Json:
    resolved = _resolved(given, document)
    return resolved | {"schema": _lowered(resolved["schema"], V3)}


def _resolved(given: Json, document: Json) -> Json:
    if "$ref" not in given:
        return given
    target: Json = document
    for step in given["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return target


def _marks(method: str, operation: Json) -> Json:
    listing = method == "get" and operation["operationId"].startswith("list")
    return {ACTION: "list" if listing else ACTIONS[method], GVK: _gvk(operation["tags"][0])}


def _operation2(method: str, operation: Json, document: Json) -> Json:
    made: Json = {"operationId": operation["operationId"], "tags": operation["tags"]}
    parameters = [_flat(_resolved(given, document)) for given in operation["parameters"]]
    if body := operation.get("requestBody"):
        content = next(iter(body["content"].values()))
        schema = _lowered(content["schema"], V2)
        parameters.append({"name": "body", "in": "body", "required": body["required"], "schema": schema})
        made["consumes"] = list(body["content"])
    code, answer = next((c, a) for c, a in operation["responses"].items() if c.startswith("2"))
    shown = _lowered(answer["content"]["application/json"]["schema"], V2)
    made["responses"] = {code: {"description": answer["description"], "schema": shown}}
    made["parameters"] = parameters
    return made | _marks(method, operation)


def _flat(parameter: Json) -> Json:
    """The schema of a parameter stands beside its name."""
    schema = _lowered(parameter["schema"], V2)
    said = {key: parameter[key] for key in ("name", "in", "description", "required") if key in parameter}
    return said | {key: schema[key] for key in PRIMITIVES if key in schema}
