"""Values of objects by their path, and as the text that listings show."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Any, Final

from msgspec import UNSET, Struct

from j10ce.model.catalogue import Column

# What moves a cursor, names a window or turns the direction of writing; halves of characters, which no output takes.
_ACTS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def shown(text: str, keep: str = "") -> str:
    """Text of others, for a terminal or a log: what would act on it is spelled, as JSON spells it, except `keep`."""
    return _ACTS.sub(lambda m: m[0] if m[0] in keep else f"\\u{ord(m[0]):04x}", text)


def dig(obj: Any, path: str) -> Any:
    """The value at a dotted path of plain data, or None. A step into a list of conditions is a type."""
    for step in path.split("."):
        if isinstance(obj, list | tuple):
            obj = next((item for item in obj if isinstance(item, dict) and item.get("type") == step), None)
        else:
            obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def cell(obj: dict[str, Any], column: Column) -> str:
    """What one column shows of an object; empty where there is nothing."""
    value = dig(obj, column.path)
    return text_of(column.default if value is None else value)


def text_of(value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {told}" for name, told in value.items())
    return str(value)


def text_at(obj: Struct, path: str) -> str:
    """A scalar of an object as a field selector spells it, defaults included; empty where there is nothing."""
    here: Any = obj
    for step in path.split("."):
        here = _member(here, step)
    if here is None or here is UNSET:
        return ""
    if isinstance(here, bool):
        return "true" if here else "false"
    return str(here.value) if isinstance(here, Enum) else text_of(here)


def _member(holder: object, name: str) -> object:
    if isinstance(holder, Struct):
        return getattr(holder, _attributes(type(holder)).get(name, ""), None)
    if isinstance(holder, tuple):  # conditions, by their type
        return next((item for item in holder if _member(item, "type") == name), None)
    return holder.get(name) if isinstance(holder, dict) else None


@cache
def _attributes(struct: type[Struct]) -> dict[str, str]:
    return dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
