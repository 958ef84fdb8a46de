"""Plain data merged leaf by leaf, as its shape says; and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from j10ce.errors import Finding, Invalid
from j10ce.manager.changes.fields import ITSELF, Tree, children, step_of
from j10ce.manager.changes.topology import LEAF, Shape

GONE: Final = object()


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """`live` with all that `config` says."""
    if isinstance(live, dict) and isinstance(config, dict) and (shape.fields or shape.values):
        return live | {k: merge(live.get(k), v, shape.below(k) or LEAF) for k, v in config.items()}
    if isinstance(config, list) and shape.items:
        return _merge_items(live or (), config, shape.items, shape.key)
    if isinstance(config, list) and shape.unordered:
        return list(dict.fromkeys((*(live or ()), *config)))
    return config


def _merge_items(live: Sequence[Any], config: list[Any], shape: Shape, key: str) -> list[Any]:
    said = {step_of(item, key): item for item in config}
    if len(said) < len(config):
        raise Invalid([Finding(key, None, "two items of a list have the same", "say each once")])
    there = [(step_of(item, key), item) for item in live]
    kept = [merge(item, said.pop(step), shape) if step in said else item for step, item in there]
    return [*kept, *said.values()]


def pruned(value: Any, gone: Tree, shape: Shape) -> Any:
    """`value` without the leaves of `gone`, or GONE; what is empty without them goes along."""
    members = children(value, shape)
    if members is None:
        inhabited = isinstance(value, dict) and value and shape.fields  # by what nobody but the server decides
        return value if inhabited or (gone and ITSELF not in gone) else GONE
    kept = {step: _pruned_member(step, member, below, gone) for step, (member, below) in members.items()}
    rest = {step: member for step, member in kept.items() if member is not GONE}
    if not isinstance(value, dict):
        return list(rest.values()) or GONE
    unowned = {name: member for name, member in value.items() if f"f:{name}" not in members}
    return unowned | {step.removeprefix("f:"): member for step, member in rest.items()} or GONE


def _pruned_member(step: str, member: Any, shape: Shape, gone: Tree) -> Any:
    if step not in gone:
        return member
    below = gone[step]
    if step.startswith("f:"):
        return pruned(member, below, shape)
    if not below or ITSELF in below:
        return GONE
    # An item that stays keeps the field that tells it apart.
    key = {name: value for name, value in member.items() if step == step_of({name: value}, name)}
    rest = pruned(member, below, shape)
    return key if rest is GONE else key | rest
