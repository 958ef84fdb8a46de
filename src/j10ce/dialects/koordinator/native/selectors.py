"""The nodes of one selector without those of another: selectors know no "not", but each of their parts has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec.structs import replace

from j10ce.dialects.koordinator.config.conflicts import overlap
from j10ce.model.bounds import MOST_ITEMS
from j10ce.model.kinds import Requirement, Selector

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
OPPOSITE: Final[dict[Operator, Operator]] = {
    "In": "NotIn",  # which holds where the label is missing, too
    "NotIn": "In",
    "Exists": "DoesNotExist",
    "DoesNotExist": "Exists",
}


def without(selector: Selector, other: Selector) -> list[Selector]:
    """Selectors that share no node, and together select what `selector` does and `other` does not."""
    if not overlap(selector, other):
        return [selector]
    pieces, rest = list[Selector](), selector
    for requirement in _requirements(other):
        outside = both(rest, replace(requirement, operator=OPPOSITE[requirement.operator]))
        if overlap(outside, outside):  # somebody is left
            pieces.append(outside)
        rest = both(rest, requirement)
    return pieces


def both(selector: Selector, requirement: Requirement) -> Selector:
    """What is banned of one label stands in one list, for whoever reads it."""
    listed = selector.match_expressions
    if requirement in listed or _is_label(selector, requirement):
        return selector
    same = next((r for r in listed if r.key == requirement.key and r.operator == requirement.operator == "NotIn"), None)
    if same is not None and len(same.values) + len(requirement.values) <= MOST_ITEMS:
        banned = replace(same, values=tuple(dict.fromkeys((*same.values, *requirement.values))))
        return replace(selector, match_expressions=tuple(banned if r is same else r for r in listed))
    return replace(selector, match_expressions=(*listed, requirement))


def _is_label(selector: Selector, r: Requirement) -> bool:
    return r.operator == "In" and len(r.values) == 1 and selector.match_labels.get(r.key) == r.values[0]


def _requirements(selector: Selector) -> Iterator[Requirement]:
    for key, value in selector.match_labels.items():
        yield Requirement(key=key, operator="In", values=(value,))
    yield from selector.match_expressions
