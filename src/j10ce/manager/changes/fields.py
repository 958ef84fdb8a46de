"""The decisions inside an object, each with its address, and sets of addresses as Kubernetes' FieldsV1 nests them.

A step is `f:name`, `k:{"type":"Ready"}` for an item of a keyed list, or `v:"cpu.max"` for a member of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from j10ce.errors import Finding, Invalid
from j10ce.manager.changes.topology import LEAF, Shape

Path = tuple[str, ...]
Tree = dict[str, Any]
ITSELF: Final = "."
SEQUENCES: Final = (list, tuple)


def leaves(value: object, shape: Shape, beside: object = None, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every decision in a struct or in plain data; parts that are equal in `beside` are left out.

    An item of a keyed list is a decision of its own: that it is there.
    """
    members = children(value, shape)
    if members is None:
        if len(path) > 1 or not shape.fields:  # an empty spec decides nothing; an empty section does: that it is there
            yield path, value
        return
    others = children(beside, shape) or {}
    for step, (member, below) in members.items():
        other = others[step][0] if step in others else None
        if other is not None and other == member:
            continue
        if step.startswith("k:"):
            yield (*path, step), None
        yield from leaves(member, below, other, (*path, step))


def children(value: object, shape: Shape) -> dict[str, tuple[Any, Shape]] | None:
    """What a granular value holds, by step; None: it is a leaf."""
    members: dict[str, tuple[Any, Shape]] = {}
    if isinstance(value, Struct):
        members = {step: (member, below) for step, member, below in _said(value, shape)}
    elif isinstance(value, dict):
        members = {f"f:{name}": (member, below) for name, member in value.items() if (below := shape.below(name))}
    elif isinstance(value, SEQUENCES) and shape.items:
        members = {step_of(item, shape.key): (item, shape.items) for item in value}
    elif isinstance(value, SEQUENCES) and shape.unordered:
        members = {f"v:{_json(item)}": (item, LEAF) for item in value}
    return members or None


def step_of(item: object, key: str) -> str:
    """The step to an item of a keyed list; raises Invalid."""
    name = item.get(key) if isinstance(item, dict) else getattr(item, key, None)
    if not isinstance(name, str):
        raise Invalid([Finding(key, None, "missing in an item of a list", "it identifies the item")])
    return "k:" + _json({key: name})


def _said(value: Struct, shape: Shape) -> Iterator[tuple[str, Any, Shape]]:
    """Default values are left out: saying them and not saying anything is the same."""
    for attribute, step, default, below in _decisions(type(value), shape):
        member = getattr(value, attribute)
        if member is not default and member is not UNSET and member != default:
            yield step, member, below


@cache
def _decisions(struct: type[Struct], shape: Shape) -> tuple[tuple[str, str, object, Shape], ...]:
    """(attribute, step, default, what is below)"""
    return tuple(
        (f.name, f"f:{f.encode_name}", f.default_factory() if callable(f.default_factory) else f.default, below)
        for f in msgspec.structs.fields(struct)
        if (below := shape.below(f.encode_name))
    )


@lru_cache(1024)  # knobs, mostly
def _member(item: str) -> str:
    return f"v:{_json(item)}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def whole(obj: object, shape: Shape) -> Tree:
    """The tree of all decisions in an object: what `leaves` finds, made in one go."""
    return {step: below for step, below in _whole(obj, shape).items() if below or not shape.fields[step[2:]].fields}


def _whole(value: Any, shape: Shape) -> Tree:
    if isinstance(value, Struct):
        return {step: {} if below is LEAF else _whole(member, below) for step, member, below in _said(value, shape)}
    if shape.unordered:
        return {_member(item): {} for item in value}
    tree: Tree = {}
    for step, (member, below) in (children(value, shape) or {}).items():
        tree[step] = {} if below is LEAF else _whole(member, below)
        if step.startswith("k:"):
            tree[step][ITSELF] = {}
    return tree


def tree(paths: Iterable[Path]) -> Tree:
    root: Tree = {}
    for path in paths:
        at = root
        for step in path:
            at = at.setdefault(step, {})
        at[ITSELF] = {}
    return _bare(root)


def _bare(at: Tree) -> Tree:
    """A leaf needs no mark of its own."""
    return {} if at.keys() == {ITSELF} else {step: _bare(below) for step, below in at.items()}


def paths(at: Tree, path: Path = ()) -> Iterator[Path]:
    if path and (not at or ITSELF in at):
        yield path
    for step, below in at.items():
        if step != ITSELF:
            yield from paths(below if isinstance(below, dict) else {}, (*path, step))


def sound(at: object) -> bool:
    """Whether what a client sent can be a tree of fields."""
    return isinstance(at, dict) and all(
        (step == ITSELF or step.startswith(("f:", "k:", "v:", "i:"))) and sound(below) for step, below in at.items()
    )


def owns(at: Tree, path: Path) -> bool:
    for step in path:
        below = at.get(step)
        if not isinstance(below, dict):
            return False
        at = below
    return not at or ITSELF in at


def common(a: Tree, b: Tree, path: Path = ()) -> Iterator[Path]:
    """What both own. It takes as long as the smaller of them, wherever they differ in size."""
    if path and (not a or ITSELF in a) and (not b or ITSELF in b):
        yield path
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    for step in few:
        if step in many and step != ITSELF:
            yield from common(few[step], many[step], (*path, step))


def spelled(path: Path) -> str:
    """As a person reads it: `.spec.units`, `.status.conditions[type="Ready"].status`."""
    return "".join(map(_spelled, path))


def _spelled(step: str) -> str:
    kind, _, name = step.partition(":")
    if kind == "f":
        return f".{name}"
    if kind == "v":
        return f"[={name}]"
    key, value = next(iter(msgspec.json.decode(name).items()))
    return f"[{key}={_json(value)}]"
