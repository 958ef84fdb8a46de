"""Values of objects by their path, and as the text that listings show."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Any, Final

from msgspec import UNSET, Struct

from j10ce.model.catalogue import Column
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell

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
    if value is None:
        value = column.default
    if not column.resource or not value:
        return text_of(value)
    kept = [floor["effective"] for floor in dig(obj, column.kept) or () if floor["resource"] == column.resource]
    less = [has for has in kept if Quantity.parse(has).amount < Quantity.parse(value).amount]
    return "/".join(amount_of(column.resource, amount) for amount in (*less, value))


def amount_of(resource: str, text: str) -> str:
    """An amount as people read it: exact ones, such as 15164876389, are for machines."""
    amount = Quantity.parse(text)
    if amount.percent:
        return text
    return spell(resource, amount.millicores() if resource == "cpu" else amount.bytes())


def text_of(value: object) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {text}" for name, text in value.items())
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
