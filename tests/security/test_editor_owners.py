"""What an editor tries with owners of fields: one write that takes the longer the more of them there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.errors import FieldConflict
from j10ce.manager.changes import ownership
from j10ce.model.kinds import ManagedFields, Meta, QoSProfile
from j10ce.model.stored import Key
from j10ce.testing.build import profile


class Tree(dict[str, Any]):
    """Fields of an owner, which count how often they are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Tree.compared += 1
        return dict.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]


def steps_of(work: Callable[[], object]) -> int:
    """How many calls it makes."""
    count = 0

    def noted(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def labelled(word: str, many: int, owners: int = 0) -> QoSProfile:
    labels = {f"{word}{n}": "x" for n in range(many)}
    entries = [
        ManagedFields(manager=f"m{n}", operation="Apply", fields_v1={"f:metadata": {"f:labels": {f"f:a{n}": {}}}})
        for n in range(owners)
    ]
    return replace(profile("p"), metadata=Meta(name="p", labels=labels, managed_fields=tuple(entries)))


def replaced(many: int) -> object:
    """All labels, in place of others."""
    return ownership.updated(labelled("a", many), labelled("b", many), MINE)


def taken(many: int) -> object:
    """From as many owners as there are labels."""
    return ownership.updated(labelled("a", many, owners=many), labelled("b", many), MINE)


def applied(many: int) -> None:
    """Over as many owners."""
    old = labelled("a", many, owners=many)
    config = {"metadata": {"labels": dict.fromkeys(old.metadata.labels, "y")}}
    new = ownership.applied(old, config, Key("QoSProfile", "", "p"), QoSProfile, MINE)
    with pytest.raises(FieldConflict):
        ownership.refuse(old, new, MINE)


MINE = ownership.FieldWriter("me", "spec", 0.0)


@pytest.mark.parametrize("write", [replaced, taken, applied])
def test_finding_out_who_owns_what_takes_as_long_as_the_object_is_large(write: Callable[[int], object]) -> None:
    """Twice as much takes twice as long, not four times: one write of a megabyte kept the event loop for seconds."""
    write(10)  # what is found out once for a kind
    assert steps_of(lambda: write(400)) < 2.5 * steps_of(lambda: write(200))


def test_owners_are_forgotten_without_comparing_them_with_one_another() -> None:
    Tree.compared = 0
    entries = [ManagedFields(manager="x", operation="Update", fields_v1=Tree({f"f:a{n}": {}})) for n in range(500)]
    crowded = replace(profile("p"), metadata=Meta(name="p", managed_fields=tuple(entries)))
    made = ownership.updated(None, crowded, MINE)
    assert len(made.metadata.managed_fields) <= ownership.MOST_MANAGERS + 1
    assert Tree.compared < 2_000
