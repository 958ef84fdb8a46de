"""What clients of Kubernetes write and do not mean: fields that are null, and finalizers that are none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from j10ce.model.bounds import MOST_ITEMS

HOLDING = (Union, UnionType, Annotated, tuple)  # types that hold the one that is meant


def fields_given(raw: Any, into: type[Struct]) -> Any:
    """An object in plain data, without fields that are null, as Kubernetes prunes them. Keys of maps are no fields: a
    selector that lost a word would choose others."""
    return _given(without_finalizers(raw), into)


def without_finalizers(raw: Any) -> Any:
    """An object in plain data; a list of finalizers that is empty is none."""
    meta = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(meta, dict) or meta.get("finalizers", True):
        return raw
    return {**raw, "metadata": {name: value for name, value in meta.items() if name != "finalizers"}}


def _given(raw: Any, into: type[Struct] | None) -> Any:
    """A list beyond its bound is left as it is: the decoder refuses it before it looks inside."""
    if into is None or not isinstance(raw, dict | list):
        return raw
    if isinstance(raw, list):
        return [_given(item, into) for item in raw] if len(raw) <= MOST_ITEMS else raw
    known = _fields(into)
    there = {name: value for name, value in raw.items() if value is not None or name not in known}
    return {name: _given(value, known.get(name)) for name, value in there.items()}


@cache  # of our own types, of which there are few; to ask takes longer than to prune what is there
def _fields(of: type[Struct]) -> Mapping[str, type[Struct] | None]:
    """By name as it is written: the struct that a field, or every item of it, is."""
    return {field.encode_name: _struct(field.type) for field in fields(of)}


def _struct(kind: Any) -> type[Struct] | None:
    """What a field holds, or every item of it."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind
    inside = get_args(kind) if get_origin(kind) in HOLDING else ()
    return next((struct for part in inside if (struct := _struct(part)) is not None), None)
