"""Structs to protobuf messages and back to plain data, which the one strict decoder then reads as if it were JSON.

A message carries what JSON would carry: what is not set, and what is at its default, is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet
from msgspec import UNSET, Struct

from j10ce.errors import Finding, Invalid, Malformed
from j10ce.manager.api import query
from j10ce.manager.api.verbs import Page
from j10ce.manager.grpc.proto import objects_pb2, requests_pb2
from j10ce.manager.openapi import shape
from j10ce.model.bounds import MOST_VALUES
from j10ce.model.schema import plain

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
MOST_PARTS: Final = MOST_VALUES // 2  # of one message
MOST_UNKNOWN: Final = 1000  # fields that are counted
Into = Callable[[Any], Any]  # a value of a struct as protobuf takes it
Back = Callable[[Any], Any]  # a value of a message as plain data


def message_of(obj: Struct) -> Message:
    """The message of an object, or of any struct inside one."""
    make, rows = _writer(type(obj))
    values = ((name, getattr(obj, attribute), default, into) for attribute, name, default, into in rows)
    return make(**{name: into(v) for name, v, default, into in values if v is not UNSET and v != default})


def plain_of(message: Message, struct: type[Struct], *, whole: bool = True) -> dict[str, Any]:
    """What JSON would say; raises Invalid for fields that this server does not know.

    A message cannot tell an empty list from none: in a `whole` object one that is required counts as empty.
    """
    if unknown := [*islice(Unknown().of(message, ""), MOST_UNKNOWN)]:
        raise Invalid(unknown, struct.__name__)
    return _plain(struct, whole, message)


def list_meta(page: Page) -> requests_pb2.ListMeta:
    return requests_pb2.ListMeta(
        resource_version=page.revision,
        continue_token=query.encode(page.rest) if page.rest else "",
        remaining_item_count=page.remaining,
    )


def serialised(message: Message | bytes) -> bytes:
    """Bytes are a message already."""
    return message if isinstance(message, bytes) else message.SerializeToString()


@cache
def _writer(struct: type[Struct]) -> tuple[Callable[..., Message], tuple[tuple[str, str, object, Into], ...]]:
    defaults = _defaults(struct) if struct.__struct_config__.omit_defaults else {}
    rows = ((f.attribute, f.name, defaults.get(f.attribute, UNSET), _into(f.form)) for f in shape.fields(struct))
    return getattr(objects_pb2, struct.__name__), tuple(rows)


def _defaults(struct: type[Struct]) -> Mapping[str, object]:
    fields = msgspec.structs.fields(struct)
    return {field.name: field.default for field in fields if field.default is not msgspec.NODEFAULT}


def _into(form: shape.Form) -> Into:
    match form:
        case shape.Scalar(name="string"):
            return str
        case shape.Scalar(name="int64"):
            return _bounded
        case shape.Scalar():
            return _same
        case shape.Time():
            return _timestamp
        case shape.Text():
            return _text
        case shape.EnumShape(values=values):
            return partial(_constant, {value: shape.constant(form, value) for value in values})
        case shape.Nested():
            return message_of
        case shape.Wrapped(name=name, inner=inner):
            return partial(_wrap, getattr(objects_pb2, name), _into(inner))
        case shape.Many(item=item):
            return partial(_each, _into(item))
        case shape.Mapped(value=value):
            return partial(_each_value, _into(value))


def _plain(struct: type[Struct], whole: bool, message: Message) -> dict[str, Any]:
    backs, empty = _reader(struct, whole)
    given: dict[str, Any] = {key: [] for key in empty}
    for descriptor, value in message.ListFields():
        key, back = backs[descriptor.name]
        if (read := back(value)) is not None:
            given[key] = read
    return given


@cache
def _reader(struct: type[Struct], whole: bool) -> tuple[Mapping[str, tuple[str, Back]], tuple[str, ...]]:
    known = getattr(objects_pb2, struct.__name__).DESCRIPTOR.fields_by_name
    fields = shape.fields(struct)
    empty = (f.key for f in fields if whole and f.required and isinstance(f.form, shape.Many))
    return {f.name: (f.key, _back(f.form, known[f.name], whole)) for f in fields}, tuple(empty)


def _back(form: shape.Form, at: FieldDescriptor, whole: bool) -> Back:
    match form:
        case shape.Scalar():
            return _same
        case shape.Time():
            return _moment
        case shape.Text():
            return _data
        case shape.EnumShape(values=values):
            numbers = at.enum_type.values_by_name if at.enum_type else {}
            return partial(_choice, {0: None} | {numbers[shape.constant(form, v)].number: v for v in values})
        case shape.Nested(struct=struct):
            return partial(_plain, struct, whole)
        case shape.Wrapped(inner=inner):
            return partial(_unwrap, _back(inner, _below(at, "values"), whole))
        case shape.Many(item=item):
            return partial(_each, _back(item, at, whole))
        case shape.Mapped(value=value):
            return partial(_each_value, _back(value, _below(at, "value"), whole))


def _below(at: FieldDescriptor, name: str) -> FieldDescriptor:
    if at.message_type is None:
        raise TypeError(f"{at.full_name} is no message")
    return at.message_type.fields_by_name[name]


class Unknown:
    """Fields of a message that this server does not know; raises Malformed where it has too many parts to look at."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def of(self, message: Message, where: str) -> Iterator[Finding]:
        hint = "this server is older than its client, or its client is wrong"
        strangers = UnknownFieldSet(message)
        for field in (strangers[index] for index in range(len(strangers))):
            yield Finding(f"{where}#{field.field_number}", None, "unknown field number", hint)
        for descriptor, value in message.ListFields():
            if descriptor.message_type is None:
                continue
            self._count(1 if isinstance(value, Message) else len(value))
            path = f"{where}{descriptor.json_name}"
            for step, below in _messages(value):
                yield from self.of(below, f"{path}{step}.")

    def _count(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise Malformed([Finding("", None, "too many parts", f"send at most {MOST_PARTS} in one message")])


def _messages(value: Any) -> Iterator[tuple[str, Message]]:
    if isinstance(value, Message):
        yield "", value
    elif isinstance(value, Mapping):
        yield from ((f".{key}", below) for key, below in value.items() if isinstance(below, Message))
    else:
        yield from ((f"[{index}]", below) for index, below in enumerate(value) if isinstance(below, Message))


def _same(value: Any) -> Any:
    return value


def _bounded(value: int) -> int:
    """A status may hold any integer, and protobuf has 64 bits: what is beyond them is shown at their end."""
    return max(LEAST, min(value, MOST))


def _timestamp(value: datetime) -> Timestamp:
    """A time that is beyond the calendar once it is written in UTC is shown at its end: no object spoils a list."""
    made = Timestamp()
    try:
        made.FromDatetime(value if value.tzinfo else value.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        made.FromDatetime(value.replace(tzinfo=UTC))
    return made


def _moment(value: Timestamp) -> object:
    """A time beyond what there is stays text, and the decoder says so, at its place."""
    try:
        return value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        return str(value.seconds)


def _text(value: object) -> str:
    return msgspec.json.encode(plain(value)).decode()


def _data(text: str) -> object:
    """Text that is no JSON stays text, and the decoder says so, at its place."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _constant(names: Mapping[str, str], value: Any) -> str:
    return names[getattr(value, "value", value)]


def _choice(values: Mapping[int, str | None], number: int) -> str | int | None:
    """A number without a name stays one, and the decoder says so, at its place."""
    return values.get(number, number)


def _wrap(make: Callable[..., Message], into: Into, value: Any) -> Message:
    return make(values=into(value))


def _unwrap(back: Back, message: Any) -> Any:
    return back(message.values)


def _each(convert: Callable[[Any], Any], values: Any) -> list[Any]:
    return [convert(value) for value in values]


def _each_value(convert: Callable[[Any], Any], values: Any) -> dict[str, Any]:
    return {key: convert(values[key]) for key in values}
