"""An ordered set of plugins with weights: how the pods of one schedulerName are decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Scores
from j10ce.scheduler.cycle.framework import (
    Binder,
    FactWatcher,
    Filter,
    Normalised,
    Permit,
    PodWatcher,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reach,
    Reserve,
    Score,
    Skip,
)

T = TypeVar("T")
NO_WEIGHTS: Final = MappingProxyType[str, float]({})


class PluginFault(NamedTuple):
    """A plugin failed where it decides about nobody. `call`: plugin and extension point; `about`: of what it was."""

    call: str
    about: str
    error: Exception


Faulted = Callable[[PluginFault], None]


def loud(fault: PluginFault) -> None:
    """Where nobody listens for faults, they end what was asked for."""
    raise fault.error


def contained(faulted: Faulted, call: Callable[..., T], *args: Any) -> T | None:
    """What a plugin answers; None where it failed: that costs nobody else anything. The first argument is what it is
    about."""
    try:
        return call(*args)
    except Exception as error:  # whatever others have written
        about = str(getattr(args[0], "key", getattr(args[0], "name", ""))) if args else ""
        faulted(PluginFault(call.__qualname__, about, error))
        return None


class Watchers:
    """The plugins that follow pods and facts, of all profiles."""

    def __init__(self, plugins: Sequence[object], faulted: Faulted) -> None:
        self._faulted = faulted
        self.of_pods = [p for p in plugins if isinstance(p, PodWatcher)]
        self._of_facts = [p for p in plugins if isinstance(p, FactWatcher)]

    def pod(self, pod: PodFacts, now: float, *, gone: bool = False) -> None:
        for plugin in self.of_pods:
            contained(self._faulted, plugin.pod_gone if gone else plugin.pod_seen, pod, now)

    def fact(self, fact: Any, now: float, *, gone: bool = False) -> None:
        for plugin in self._of_facts:
            if isinstance(fact, plugin.facts):
                contained(self._faulted, plugin.fact_gone if gone else plugin.fact_seen, fact, now)


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


class Asked(NamedTuple):
    """The plugins of a profile that have something to say about a shape, by reach."""

    node_filters: tuple[Filter, ...]
    room_filters: tuple[Filter, ...]
    cluster_filters: tuple[Filter, ...]
    node_scores: tuple[WeightedScore, ...]
    room_scores: tuple[WeightedScore, ...]
    normalised: tuple[WeightedScore, ...]  # of reach NODE, SUMS or ROOM
    cluster_scores: tuple[WeightedScore, ...]

    @property
    def of_sums(self) -> bool:
        """What the pods on a row answer for is in the book's sums."""
        scores = (*self.room_scores, *self.normalised)
        reaches = {f.reach for f in self.room_filters} | {s.plugin.reach for s in scores}
        return reaches <= {Reach.NODE, Reach.SUMS}


class Roster:
    """What is the same for every pod of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.anew = tuple(p for p in profile.pre_filters if not _lasting(p))  # asked about each pod
        self.pre_scores = {id(p): p for p in profile.pre_scores}
        self.counts = {id(s.plugin): _normaliser(s) for s in profile.scores}
        self._once = tuple(p for p in profile.pre_filters if _lasting(p))
        self._once_scored = tuple(p for p in profile.pre_scores if _lasting(p))
        self._normalised = {id(s.plugin) for s in profile.scores if isinstance(s.plugin, Normalised)}

    def asked(self, pod: PodFacts, book: Book) -> Asked:
        rows = np.arange(len(book))
        silent = {id(p) for p in self._once if isinstance(p.pre_filter(pod, book), Skip)}
        mute = {id(p) for p in self._once_scored if isinstance(p.pre_score(pod, book, rows), Skip)}
        filters = [f for f in self._profile.filters if id(f) not in silent]
        scores = [s for s in self._profile.scores if s.weight and id(s.plugin) not in mute]
        kept = [s for s in scores if s.plugin.reach is not Reach.CLUSTER]
        plain = [s for s in kept if id(s.plugin) not in self._normalised]
        return Asked(
            tuple(f for f in filters if f.reach is Reach.NODE),
            tuple(f for f in filters if f.reach in (Reach.SUMS, Reach.ROOM)),
            tuple(f for f in filters if f.reach is Reach.CLUSTER),
            tuple(s for s in plain if s.plugin.reach is Reach.NODE),
            tuple(s for s in plain if s.plugin.reach is not Reach.NODE),
            tuple(s for s in kept if id(s.plugin) in self._normalised),
            tuple(s for s in scores if s.plugin.reach is Reach.CLUSTER),
        )


def _lasting(plugin: object) -> bool:
    """Whether what it says of a shape holds as long as the shape does: it looks at the shape alone."""
    if isinstance(plugin, Filter):
        return plugin.reach is not Reach.CLUSTER
    return isinstance(plugin, Score) and plugin.reach is not Reach.CLUSTER


def _normaliser(scored: WeightedScore) -> Callable[[Scores], Scores]:
    """Raw scores of the nodes that are left, as they count."""
    plugin, weight = scored
    if isinstance(plugin, Normalised):
        normalise = plugin.normalise
        return lambda raw: normalise(raw) * weight
    return lambda raw: raw * weight
