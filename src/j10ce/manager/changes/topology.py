"""How values of a type merge: what is one decision, and what holds several that different people may own.

Structs and maps are granular, and so are lists whose items a key tells apart; everything else is decided as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from msgspec import Struct, inspect

from j10ce.model.kinds import Condition, HoldSpec, Owner, Selector

# Half of a selector selects something else altogether.
ATOMIC: Final[frozenset[type[Struct]]] = frozenset({Selector})
# Items of a list that one of their fields identifies.
KEYED: Final[Mapping[type[Struct], str]] = {Condition: "type", Owner: "uid"}
# Lists of texts in which order says nothing and each stands once.
UNORDERED: Final[frozenset[tuple[type[Struct], str]]] = frozenset({(HoldSpec, "knobs")})


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Of the four at most one is set; without any, the value is a leaf. Every type has one of its own."""

    fields: Mapping[str, Shape] = field(default_factory=dict)  # of a struct, by name in JSON
    values: Shape | None = None  # of a map
    items: Shape | None = None  # of a list whose items `key` tells apart
    key: str = ""
    unordered: bool = False  # a set of texts

    def below(self, name: str) -> Shape | None:
        """Of one member; None where a struct has no such field."""
        return self.fields.get(name) if self.fields else self.values


LEAF: Final = Shape()


@cache
def shape_of(struct: type[Struct]) -> Shape:
    return _shape(inspect.type_info(struct))


def _shape(type_: inspect.Type) -> Shape:
    match type_:
        case inspect.Metadata(type=inner):
            return _shape(inner)
        case inspect.StructType(cls=cls) if cls not in ATOMIC:
            return Shape(fields={f.encode_name: _field(cls, f) for f in type_.fields})
        case inspect.DictType(value_type=value) if not isinstance(value, inspect.AnyType):
            return Shape(values=_shape(value))
        case inspect.VarTupleType(item_type=inspect.StructType(cls=cls) as item) if cls in KEYED:
            return Shape(items=_shape(item), key=KEYED[cls])
        case _:
            return LEAF


def _field(holder: type[Struct], field: inspect.Field) -> Shape:
    return Shape(unordered=True) if (holder, field.encode_name) in UNORDERED else _shape(field.type)
