"""How the model's structs look as protobuf messages: one description, for the generator of the .proto and the codec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.inspect import (
    AnyType,
    BoolType,
    CustomType,
    DateTimeType,
    DictType,
    EnumType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    StrType,
    StructType,
    Type,
    VarTupleType,
)

from j10ce.manager.access.enrolment import NodeCredential
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.placement import Placement
from j10ce.policy.document.document import NodeDocument

TIMESTAMP: Final = "google.protobuf.Timestamp"
ANSWERS: Final = (Placement, NodeCredential, NodeDocument)  # of what is no verb of a stored object
RENAMED: Final = {"class": "traffic_class"}  # a field cannot be called so in most languages


class Scalar(NamedTuple):
    """`bool`, `int64`, `double` or `string`; quantities and durations are strings, as in JSON."""

    name: str


class Time(NamedTuple):
    name: str = TIMESTAMP


class Text(NamedTuple):
    """Free-form data as JSON text: a Struct would make every integer a double."""

    name: str = "string"


class EnumShape(NamedTuple):
    """`values` as JSON spells them; an enum of one field stands inside its message."""

    name: str
    values: tuple[str, ...]
    shared: bool = False


class Nested(NamedTuple):
    name: str
    struct: type[Struct]


class Many(NamedTuple):
    item: Single

    @property
    def name(self) -> str:
        return f"repeated {self.item.name}"


class Mapped(NamedTuple):
    value: Single

    @property
    def name(self) -> str:
        return f"map<string, {self.value.name}>"


class Wrapped(NamedTuple):
    """A list or a map as a value of a map, which protobuf only has inside a message."""

    name: str
    inner: Many | Mapped


Single = Scalar | Time | Text | EnumShape | Nested | Wrapped
Form = Single | Many | Mapped


class Field(NamedTuple):
    name: str  # in the .proto
    key: str  # in JSON
    attribute: str  # of the struct
    form: Form
    required: bool


@cache
def fields(struct: type[Struct]) -> tuple[Field, ...]:
    """What the message of a struct has; a constant (`apiVersion`, `kind`) follows from the message's type."""
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, StructType)  # noqa: S101  for the type checker
    named = ((RENAMED.get(f.encode_name, snake(f.encode_name)), f) for f in info.fields if not _constant(f.type))
    return tuple(
        Field(name, f.encode_name, f.name, _form(f.type, f"{struct.__name__}.{name}"), f.required) for name, f in named
    )


def messages() -> tuple[type[Struct], ...]:
    """Every struct that the kinds and ANSWERS are made of, each once, a user before what it uses."""
    structs: dict[type[Struct], None] = {}
    waiting: list[type[Struct]] = [*(kind.struct for kind in KINDS.values()), *ANSWERS]
    while waiting:
        struct = waiting.pop(0)
        structs[struct] = None
        below = [form.struct for field in fields(struct) for form in inside(field.form) if isinstance(form, Nested)]
        waiting += [inner for inner in below if inner not in structs and inner not in waiting]
    return tuple(structs)


def constant(choice: EnumShape, value: str) -> str:
    """The name of an enum's value: LENDING_MODE_NONE."""
    return re.sub(r"\W", "_", f"{snake(choice.name)}_{snake(value)}").upper()


def has_status(kind: Kind) -> bool:
    return any(field.key == "status" for field in fields(kind.struct))


def snake(name: str) -> str:
    """`matchLabels` is match_labels; digits stay with the word before them, as protobuf's own JSON names want it."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _constant(t: Type) -> bool:
    return isinstance(t, LiteralType) and len(t.values) == 1


def inside(form: Form) -> Iterator[Form]:
    yield form
    match form:
        case Many(item=inner) | Mapped(value=inner) | Wrapped(inner=inner):
            yield from inside(inner)
        case _:
            pass


def _form(t: Type, where: str) -> Form:
    match t:
        case DictType(value_type=AnyType()):
            return Text()
        case DictType(value_type=value):
            return Mapped(_single(value, where))
        case ListType(item_type=item) | VarTupleType(item_type=item):
            return Many(_single(item, where))
        case _:
            return _single(t, where)


def _single(t: Type, where: str) -> Single:
    match t:
        case BoolType():
            return Scalar("bool")
        case IntType():
            return Scalar("int64")
        case FloatType():
            return Scalar("double")
        case StrType() | CustomType():
            return Scalar("string")
        case DateTimeType():
            return Time()
        case AnyType():
            return Text()
        case LiteralType(values=values) if all(isinstance(value, str) for value in values):
            return EnumShape(_title(where.rpartition(".")[2]), tuple(map(str, values)))
        case EnumType(cls=cls):
            return EnumShape(cls.__name__, tuple(member.value for member in cls), shared=True)
        case StructType(cls=cls):
            return Nested(cls.__name__, cls)
        case DictType() | ListType() | VarTupleType():
            inner = _form(t, where)
            return Wrapped(_wrapper(inner), inner) if isinstance(inner, Many | Mapped) else Text()
        case _:
            pass
    raise TypeError(f"{where}: there is no protobuf form for {t}; give it one in openapi/shape.py")


def _wrapper(inner: Many | Mapped) -> str:
    value = inner.item if isinstance(inner, Many) else inner.value
    return _title(value.name.rpartition(".")[2]) + ("List" if isinstance(inner, Many) else "Map")


def _title(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))
