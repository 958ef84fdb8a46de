"""What all strategies together say of one node, and which of them said it. Pure.

Strategies are laid over each other, the lowest priority first: a field that is said replaces what was said below it,
sections and profiles are merged field by field, lists are replaced whole. Among equal priorities the first name wins,
as among profiles.

Each strategy may be right by itself, and two of them wrong together: one says from where on, another until where. Then
the field of the lower one is left out, as if it had never been said, and the node reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import NodeStrategy, Strict
from j10ce.model.parts.strategy import HostApplication, Strategy
from j10ce.policy.select import Labels, matches

S = TypeVar("S", bound=Strict)
EVERYTHING: Final = Strategy()
NOTHING_SAID: Final[Mapping[str, str]] = MappingProxyType({})


class Ascending(NamedTuple):
    """Two fields of which the one has to be below the other."""

    low: str
    high: str
    equal: bool = False  # may be

    def holds(self, low: float, high: float) -> bool:
        return low <= high if self.equal else low < high


ASCENDING: Final = (
    Ascending("eviction.memory.lowerPercent", "eviction.memory.thresholdPercent"),
    Ascending("eviction.cpu.lowerPercent", "eviction.cpu.thresholdPercent"),
    Ascending("eviction.cpu.satisfactionLowerPercent", "eviction.cpu.satisfactionUpperPercent", equal=True),
    Ascending("eviction.allocatable.cpuLowerPercent", "eviction.allocatable.cpuThresholdPercent"),
    Ascending("eviction.allocatable.memoryLowerPercent", "eviction.allocatable.memoryThresholdPercent"),
)


class EffectiveStrategy(NamedTuple):
    """`origins` and `left_out` are by the path of a field: `eviction.memory.thresholdPercent`."""

    strategy: Strategy = EVERYTHING
    origins: Mapping[str, str] = NOTHING_SAID  # the object that said it: NodeStrategy/batch-pool
    left_out: Mapping[str, LeftOut] = MappingProxyType({})


class LeftOut(NamedTuple):
    origin: str
    why: str


def effective(strategies: Iterable[NodeStrategy], node_labels: Labels) -> EffectiveStrategy:
    """What is in force on a node with these labels."""
    return merged(s for s in strategies if selects(s, node_labels))


def selects(strategy: NodeStrategy, node_labels: Labels) -> bool:
    selector = strategy.spec.node_selector
    return selector is UNSET or matches(selector, node_labels)


def merged(strategies: Iterable[NodeStrategy]) -> EffectiveStrategy:
    """The same of strategies that all select the node."""
    named = sorted(strategies, key=lambda s: s.metadata.name, reverse=True)
    ordered = sorted(named, key=lambda s: s.spec.priority)  # stable: among equals the first name comes last
    strategy, origins = EVERYTHING, dict[str, str]()
    for above in ordered:
        strategy = _laid_over(strategy, above.spec, "", f"{above.kind}/{above.metadata.name}", origins)
    ranks = {f"{s.kind}/{s.metadata.name}": rank for rank, s in enumerate(ordered)}
    return reduce(lambda made, order: _settled(made, order, ranks), ASCENDING, EffectiveStrategy(strategy, origins))


def fields(strategy: Strategy) -> Iterator[tuple[str, Any]]:
    """Every field that is said, by its path; selector, priority and rollout of a spec are no part of what it says."""
    return _fields(strategy, Strategy, "")


def _fields(of: Strict, shape: type[Strict], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in _values(of, shape):
        here = _joined(path, key)
        if isinstance(value, Strict):
            yield from _fields(value, type(value), here)
        elif isinstance(value, dict):
            yield from (said for name, below in value.items() for said in _fields(below, type(below), f"{here}.{name}"))
        elif _is_said(value):
            yield here, value


def rows(said: EffectiveStrategy) -> list[tuple[str, str, str]]:
    """(field, value, who said it) for people, what was left out at the end."""
    shown = [(path, _spelled(value), said.origins[path]) for path, value in fields(said.strategy)]
    return shown + [(path, f"left out: {out.why}", out.origin) for path, out in said.left_out.items()]


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{a.name} in {a.cgroup}" if isinstance(a, HostApplication) else str(a) for a in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _laid_over(under: S, over: Strict, path: str, origin: str, origins: dict[str, str]) -> S:
    """`over` may say more than `under` has fields for: selector and priority are no part of a strategy's content."""
    changed: dict[str, Any] = {}
    for name, (key, above) in zip(under.__struct_fields__, _values(over, type(under)), strict=True):
        below, here = getattr(under, name), _joined(path, key)
        if isinstance(above, Strict):
            changed[name] = _laid_over(below, above, here, origin, origins)
        elif isinstance(above, dict):
            said = {k: v for k, v in above.items() if v != type(v)()}
            laid = {k: _laid_over(below.get(k, type(v)()), v, f"{here}.{k}", origin, origins) for k, v in said.items()}
            changed[name] = {**below, **laid}
        elif _is_said(above):
            changed[name], origins[here] = above, origin
    return replace(under, **changed)


def _values(of: Strict, shape: type[Strict]) -> Iterator[tuple[str, Any]]:
    """(key in JSON, value) of the fields that `shape` has."""
    names = zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True)
    return ((key, getattr(of, name)) for name, key in names)


def _is_said(value: object) -> bool:
    """An empty list says nothing: protobuf cannot tell it from none."""
    return value is not UNSET and value not in ((), "")


def _settled(made: EffectiveStrategy, order: Ascending, ranks: Mapping[str, int]) -> EffectiveStrategy:
    """Without the field of the lower strategy where two contradict each other."""
    said = dict(fields(made.strategy))
    if order.low not in said or order.high not in said or order.holds(said[order.low], said[order.high]):
        return made
    origins = dict(made.origins)
    low, high = origins[order.low], origins[order.high]
    gone = order.high if ranks[high] < ranks[low] else order.low
    must = "be above" if order.equal else "reach"
    why = f"{order.low} {said[order.low]} ({low}) may not {must} {order.high} {said[order.high]} ({high})"
    out = {**made.left_out, gone: LeftOut(origins.pop(gone), why)}
    return EffectiveStrategy(_without(made.strategy, gone.split(".")), origins, out)


def _without(of: S, steps: list[str]) -> S:
    name = of.__struct_fields__[of.__struct_encode_fields__.index(steps[0])]
    return replace(of, **{name: _without(getattr(of, name), steps[1:]) if steps[1:] else UNSET})


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
