"""An ordered set of plugins with weights: how the pods of one schedulerName are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from j10ce.scheduler.cycle.framework import (
    Binder,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)

NO_WEIGHTS: Final = MappingProxyType[str, float]({})


class WeightedScore(NamedTuple):
    plugin: Score
    weight: float


class Profile(NamedTuple):
    """By extension point, in the order in which they are asked. Without `queue_sort`, the first come is the first."""

    name: str  # schedulerName of its pods
    queue_sort: QueueSort | None = None
    pre_enqueues: tuple[PreEnqueue, ...] = ()
    pre_filters: tuple[PreFilter, ...] = ()
    filters: tuple[Filter, ...] = ()
    post_filters: tuple[PostFilter, ...] = ()
    pre_scores: tuple[PreScore, ...] = ()
    scores: tuple[WeightedScore, ...] = ()
    reserves: tuple[Reserve, ...] = ()
    permits: tuple[Permit, ...] = ()
    pre_binds: tuple[PreBind, ...] = ()
    binders: tuple[Binder, ...] = ()
    post_binds: tuple[PostBind, ...] = ()

    @property
    def asks_before_binding(self) -> bool:
        return bool(self.reserves or self.permits or self.pre_binds or self.binders)

    @property
    def plugins(self) -> tuple[object, ...]:
        """Each once."""
        asked: list[object] = [
            *self.pre_enqueues, *self.pre_filters, *self.filters, *self.post_filters, *self.pre_scores,
            *(s.plugin for s in self.scores), *self.reserves, *self.permits, *self.pre_binds, *self.binders,
            *self.post_binds, *((self.queue_sort,) if self.queue_sort else ()),
        ]  # fmt: skip
        return tuple({id(p): p for p in asked}.values())


def profile(name: str, plugins: Sequence[object], weights: Mapping[str, float] = NO_WEIGHTS) -> Profile:
    """Each plugin at all points that it implements; the first queue_sort is the one. A weight that is not said is 1."""
    return Profile(
        name,
        next((p for p in plugins if isinstance(p, QueueSort)), None),
        tuple(p for p in plugins if isinstance(p, PreEnqueue)),
        tuple(p for p in plugins if isinstance(p, PreFilter)),
        tuple(p for p in plugins if isinstance(p, Filter)),
        tuple(p for p in plugins if isinstance(p, PostFilter)),
        tuple(p for p in plugins if isinstance(p, PreScore)),
        tuple(WeightedScore(p, weights.get(p.name, 1.0)) for p in plugins if isinstance(p, Score)),
        tuple(p for p in plugins if isinstance(p, Reserve)),
        tuple(p for p in plugins if isinstance(p, Permit)),
        tuple(p for p in plugins if isinstance(p, PreBind)),
        tuple(p for p in plugins if isinstance(p, Binder)),
        tuple(p for p in plugins if isinstance(p, PostBind)),
    )
