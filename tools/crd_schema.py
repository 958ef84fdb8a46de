"""Structs of the model as structural schemas: every node typed, no references, defaults where the model has them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.inspect import (
    AnyType,
    BoolType,
    CustomType,
    DateTimeType,
    DictType,
    EnumType,
    Field,
    FloatType,
    IntType,
    LiteralType,
    StrType,
    StructType,
    Type,
    VarTupleType,
)

from j10ce.manager.openapi.fields import described
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import Condition, Selector
from j10ce.model.quantity import Quantity
from tools.crd_rules import CONDITION, DURATION, FIELDS, QUANTITY, RULES

Json = dict[str, Any]
REQUIRED: Final = ("type", "status", "reason", "message", "lastTransitionTime")
RULES_KEY: Final = "x-kubernetes-validations"
KEPT_BY_THE_SERVER: Final[Json] = {
    "apiVersion": {"description": "Group and version of this shape.", "type": "string"},
    "kind": {"description": "The kind of this object.", "type": "string"},
    "metadata": {"type": "object"},
}


def schema_of(kind: Kind) -> Json:
    """A whole object.

    Status has defaults only where a column shows them: every other one is a line in every report. And amounts in it are
    taken as they come: a report that is refused helps nobody.
    """
    made = struct_schema(kind.struct)
    made["properties"] = KEPT_BY_THE_SERVER | made["properties"] | KEPT_BY_THE_SERVER
    made["required"].remove("metadata")
    if not made["required"]:
        del made["required"]
    if status := made["properties"].get("status"):
        if conditions := status["properties"].get("conditions"):
            conclude(conditions["items"])
        as_told(status, "status", {column.path for column in kind.columns})
    return made


def conclude(condition: Json) -> None:
    """What managers conclude is a condition as Kubernetes has it; what agents report is taken as it comes."""
    condition["required"] = list(REQUIRED)
    for name, bounds in CONDITION.items():
        condition["properties"][name] |= bounds


def struct_schema(struct: type[Struct]) -> Json:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, StructType)
    made: Json = {"description": described(struct), "type": "object"}
    if required := [field.encode_name for field in info.fields if field.required]:
        made["required"] = required
    made["properties"] = {field.encode_name: field_schema(struct, field) for field in info.fields}
    if rules := RULES.get(struct.__name__):
        made[RULES_KEY] = [{"rule": rule, "message": message} for rule, message in rules]
    if struct is Selector:
        made["x-kubernetes-map-type"] = "atomic"  # half of one selector and half of another is nobody's wish
    return made


def field_schema(struct: type[Struct], field: Field) -> Json:
    known = FIELDS.get((struct.__name__, field.encode_name), {})
    shape = known if "type" in known else type_schema(field.type) | known
    made: Json = {"description": "", **shape} | {"description": described(struct, field.name)}
    if isinstance(field.default, Struct):
        return made | ({"default": {}} if gives(made) else {})
    if isinstance(field.default, int | float) or (isinstance(field.default, str) and field.default):
        made["default"] = field.default
    return made


def type_schema(t: Type) -> Json:
    match t:
        case StructType(cls=cls):
            return struct_schema(cls)
        case VarTupleType(item_type=StructType(cls=cls)) if cls is Condition:
            return {"type": "array", "items": struct_schema(cls), **LIST_OF_CONDITIONS}
        case VarTupleType(item_type=item):
            return {"type": "array", "items": type_schema(item), "x-kubernetes-list-type": "atomic"}
        case DictType(value_type=AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case DictType(value_type=value):
            return {"type": "object", "additionalProperties": type_schema(value)}
        case LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case EnumType(cls=choices):
            return {"type": "string", "enum": [member.value for member in choices]}
        case CustomType(cls=cls) if cls is Quantity:
            return {"x-kubernetes-int-or-string": True, "minimum": 0, "pattern": QUANTITY}
        case CustomType():
            return {"type": "string", "minLength": 1, "pattern": DURATION}
        case _:
            return dict(PLAIN[type(t)])


LIST_OF_CONDITIONS: Final[Json] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
PLAIN: Final[dict[type[Type], Json]] = {
    StrType: {"type": "string"},
    BoolType: {"type": "boolean"},
    IntType: {"type": "integer", "format": "int64"},
    FloatType: {"type": "number"},
    DateTimeType: {"type": "string", "format": "date-time"},
}


def gives(schema: Json) -> bool:
    """Whether an empty object of this shape would gain anything by defaults."""
    return any("default" in below for below in schema.get("properties", {}).values())


def as_told(schema: Json, path: str, wanted: Collection[str]) -> None:
    """Drop bounds and other defaults here and below; an object keeps its default while that still gives something."""
    for name, below in schema.get("properties", {}).items():
        as_told(below, f"{path}.{name}", wanted)
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            as_told(schema[inner], f"{path}[]", wanted)
    if "x-kubernetes-int-or-string" in schema:
        del schema["pattern"], schema["minimum"]
    if path not in wanted and not gives(schema):
        schema.pop("default", None)
