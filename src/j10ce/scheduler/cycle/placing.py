"""From the choice of a node to the binding: reserve, permit, pre_bind, bind; and back again.

A pod that is placed is assumed there. It waits for permits, or its binding is in flight, until the driver says how that
went.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer
from j10ce.scheduler.cycle.framework import Await, Refused, Skip
from j10ce.scheduler.cycle.profile import Faulted, Profile, contained

NO_ANNOTATIONS: Final = MappingProxyType[str, str]({})


class Placed(NamedTuple):
    pod: PodFacts
    node: str
    why: str
    profile: Profile


class Waits(NamedTuple):
    """For permits of plugins, by name: until when."""

    placed: Placed
    until: dict[str, float]
    reasons: tuple[str, ...]


class TurnedDown(NamedTuple):
    """By a plugin, after a node was chosen: the pod has given it back."""

    pod: PodFacts
    plugin: str
    why: str


class Placing:
    def __init__(self, book: Book, faulted: Faulted) -> None:
        self._book, self._faulted = book, faulted
        self.waiting: dict[str, Waits] = {}  # by uid
        self.binding: dict[str, Placed] = {}

    def place(self, placed: Placed, now: float, out: list[Decision]) -> TurnedDown | None:
        """Decides that the pod is bound, or waits. A plugin that fails turns it down."""
        self._book.assume(placed.pod, placed.node)
        try:
            return self._reserve(placed, now) or self._permit(placed, now, out)
        except Exception as fault:
            return self._failed(placed, fault, now)

    def place_all(self, all_of: Sequence[Placed], rows: Sequence[int], now: float, out: list[Decision]) -> None:
        """Pods of one shape and of a profile that asks nobody else: as `place` of each."""
        self._book.assume_all([placed.pod for placed in all_of], rows)
        for placed in all_of:
            self.binding[placed.pod.uid] = placed
            out.append(Bind(placed.pod, placed.node, NO_ANNOTATIONS, placed.why))

    def release(self, now: float, out: list[Decision]) -> Iterator[TurnedDown]:
        """Binds those that wait no longer; yields those that have waited for too long."""
        for profile in {id(w.placed.profile): w.placed.profile for w in self.waiting.values()}.values():
            for permit in profile.permits:
                for uid in contained(self._faulted, permit.permitted) or ():
                    if (waits := self.waiting.get(uid)) is not None:
                        waits.until.pop(permit.name, None)
        for uid, waits in list(self.waiting.items()):
            if uid not in self.waiting:
                continue
            if not waits.until:
                del self.waiting[uid]
                if (down := self._bound_or_back(waits.placed, now, out)) is not None:
                    yield down
            elif (over := min(waits.until.values())) <= now:
                late = next(name for name, until in waits.until.items() if until == over)
                yield self.reject(uid, late, f"waited for too long: {'; '.join(waits.reasons)}", now)

    def reject(self, uid: str, plugin: str, why: str, now: float) -> TurnedDown:
        """One that waits for permits."""
        return self._give_back(self.waiting.pop(uid).placed, plugin, why, now)

    def bound(self, uid: str, now: float) -> None:
        if (placed := self.binding.pop(uid, None)) is not None:
            for plugin in placed.profile.post_binds:
                contained(self._faulted, plugin.post_bind, placed.pod, placed.node, now)

    def seen(self, pod: PodFacts, now: float) -> None:
        """It has a node: the one that was chosen, or somebody else's choice."""
        placed = self.binding.get(pod.uid)
        if placed is not None and placed.node == pod.node:
            self.bound(pod.uid, now)
        else:
            self.drop(pod.uid, now)

    def failed(self, uid: str, why: str, now: float) -> TurnedDown | None:
        """A binding. None: nobody waits for it."""
        placed = self.binding.pop(uid, None)
        return self._give_back(placed, "Binding", why, now) if placed is not None else None

    def drop(self, uid: str, now: float) -> None:
        """The pod is gone."""
        waits = self.waiting.pop(uid, None)
        placed = waits.placed if waits is not None else self.binding.pop(uid, None)
        if placed is not None:
            self._unreserve(placed, now)

    def has(self, uid: str) -> bool:
        return uid in self.waiting or uid in self.binding

    def next_at(self) -> float:
        return min((at for waits in self.waiting.values() for at in waits.until.values()), default=math.inf)

    # -- inside

    def _reserve(self, placed: Placed, now: float) -> TurnedDown | None:
        for plugin in placed.profile.reserves:
            if isinstance(refused := plugin.reserve(placed.pod, placed.node, now), Refused):
                return self._give_back(placed, plugin.name, refused.reason, now)
        return None

    def _permit(self, placed: Placed, now: float, out: list[Decision]) -> TurnedDown | None:
        until, reasons = dict[str, float](), list[str]()
        for plugin in placed.profile.permits:
            match plugin.permit(placed.pod, placed.node, now):
                case Refused(reason, _):
                    return self._give_back(placed, plugin.name, reason, now)
                case Await(at, reason):
                    until[plugin.name] = at
                    reasons.append(reason)
                case None:
                    pass
        if not until:
            return self._bind(placed, now, out)
        self.waiting[placed.pod.uid] = Waits(placed, until, tuple(reasons))
        out.append(Defer(placed.pod, "Waiting", "; ".join(reasons), min(until.values())))
        return None

    def _bound_or_back(self, placed: Placed, now: float, out: list[Decision]) -> TurnedDown | None:
        try:
            return self._bind(placed, now, out)
        except Exception as fault:
            return self._failed(placed, fault, now)

    def _bind(self, placed: Placed, now: float, out: list[Decision]) -> TurnedDown | None:
        pod, node, why, profile = placed
        for plugin in profile.pre_binds:
            if isinstance(refused := plugin.pre_bind(pod, node, now), Refused):
                return self._give_back(placed, plugin.name, refused.reason, now)
        annotations: Mapping[str, str] = NO_ANNOTATIONS
        for binder in profile.binders:
            if not isinstance(said := binder.bind(pod, node, now), Skip):
                annotations = said
                break
        self.binding[pod.uid] = placed
        out.append(Bind(pod, node, annotations, why))
        return None

    def _failed(self, placed: Placed, fault: Exception, now: float) -> TurnedDown:
        return self._give_back(placed, "a plugin failed", f"{type(fault).__name__}: {fault}", now)

    def _give_back(self, placed: Placed, plugin: str, why: str, now: float) -> TurnedDown:
        self._unreserve(placed, now)
        self._book.forget(placed.pod.uid)
        return TurnedDown(placed.pod, plugin, why)

    def _unreserve(self, placed: Placed, now: float) -> None:
        for plugin in reversed(placed.profile.reserves):
            contained(self._faulted, plugin.unreserve, placed.pod, placed.node, now)
