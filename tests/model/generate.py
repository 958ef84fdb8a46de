"""Strategies for every kind, derived from the structs themselves, so that no field is forgotten."""

from __future__ import annotations

import types
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object
from j10ce.model.quantity import SUFFIXES, Duration, Quantity

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: WORDS,
    int: st.integers(-(2**40), 2**40),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    UnsetType: st.just(UNSET),
    type(None): st.none(),
    datetime: st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    Quantity: st.builds("{}{}".format, st.integers(0, 10**6), st.sampled_from([*SUFFIXES, "%"]))
    .filter(lambda text: not text.endswith(("E", "Ei", "P", "Pi")))
    .map(Quantity.parse),
    Duration: st.integers(0, 10**9).map(lambda n: Duration(n / 1000)),
    Any: st.recursive(st.none() | st.booleans() | WORDS, lambda inner: st.lists(inner, max_size=2), max_leaves=3),
}


def objects() -> st.SearchStrategy[Object]:
    return st.one_of([of(kind.struct) for kind in KINDS.values()])


@cache
def of(annotation: Any) -> st.SearchStrategy[Any]:
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in PLAIN:
        return PLAIN[annotation]
    if origin in (Union, types.UnionType):
        return st.one_of([of(a) for a in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(WORDS, of(args[1]), max_size=2)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    assert issubclass(annotation, Struct)
    hints = get_type_hints(annotation)
    given = {f.name: of(hints[f.name]) for f in msgspec.structs.fields(annotation) if f.required}
    chance = {f.name: of(hints[f.name]) for f in msgspec.structs.fields(annotation) if not f.required}
    return st.fixed_dictionaries(given, optional=chance).map(lambda fields: annotation(**fields))
