"""How the pods of one shape stand with every node, kept from one of them to the next.

What a filter or a score of reach NODE answers holds until the node's object changes; what one of reach SUMS or ROOM
answers, until the row is touched. Each look asks anew about those rows alone.

    points = ⌊10000 · Σ weight · score⌋ · 2²⁰ + how early the node's name stands in the alphabet;  −1: it does not fit
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Normalised, Reach, Score, Skip
from j10ce.scheduler.cycle.profile import Profile, WeightedScore

PARTS: Final = 10_000.0  # of a point: what is closer than that is equal
NAMES: Final = 1 << 20
MOST_TOTAL: Final = 8e12  # parts: with a name, within 64 bits
NONE: Final = -1


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


def asked(profile: Profile, pod: PodFacts, book: Book) -> Asked:
    rows = np.arange(len(book))
    silent = {id(p) for p in profile.pre_filters if lasting(p) and isinstance(p.pre_filter(pod, book), Skip)}
    mute = {id(p) for p in profile.pre_scores if lasting(p) and isinstance(p.pre_score(pod, book, rows), Skip)}
    filters = [f for f in profile.filters if id(f) not in silent]
    scores = [s for s in profile.scores if s.weight and id(s.plugin) not in mute]
    plain = [s for s in scores if s.plugin.reach is not Reach.CLUSTER and not isinstance(s.plugin, Normalised)]
    return Asked(
        tuple(f for f in filters if f.reach is Reach.NODE),
        tuple(f for f in filters if f.reach in (Reach.SUMS, Reach.ROOM)),
        tuple(f for f in filters if f.reach is Reach.CLUSTER),
        tuple(s for s in plain if s.plugin.reach is Reach.NODE),
        tuple(s for s in plain if s.plugin.reach is not Reach.NODE),
        tuple(s for s in scores if s.plugin.reach is not Reach.CLUSTER and isinstance(s.plugin, Normalised)),
        tuple(s for s in scores if s.plugin.reach is Reach.CLUSTER),
    )


def lasting(plugin: object) -> bool:
    """Whether what it says of a shape holds as long as the shape does: it looks at the shape alone."""
    if isinstance(plugin, Filter):
        return plugin.reach is not Reach.CLUSTER
    return isinstance(plugin, Score) and plugin.reach is not Reach.CLUSTER


class Outlook:
    def __init__(self, profile: Profile, pod: PodFacts, book: Book) -> None:
        self.shape = pod.shape
        self.asked = asked(profile, pod, book)
        self.version = -1
        self.rows = 0
        self.allowed: Mask = np.zeros(0, np.bool_)  # by filters of reach NODE
        self.points: Rows = np.zeros(0, np.int64)
        self._steady: Scores = np.zeros(0)  # weighed scores of reach NODE
        self._total: Scores = np.zeros(0)  # and of all others that are not normalised
        self._bands = [Band(s) for s in self.asked.normalised]
        self._order: Rows = np.zeros(0, np.int64)

    def look(self, pod: PodFacts, book: Book) -> None:
        order = book.order()
        if self.version == book.version and self._order is order:
            return
        if self._order is not order:
            self._reorder(order)
        rows: Rows = np.flatnonzero(book.touched_at[: self.rows] > self.version)
        if book.changed > self.version:
            self._look_at_nodes(pod, book, np.flatnonzero(book.changed_at[: self.rows] > self.version))
        self.version = book.version
        self._look_at_room(pod, book, rows)

    def _reorder(self, order: Rows) -> None:
        """Rows are for life, so there are more of them, or as many."""
        more, self.rows, self._order = len(order) - self.rows, len(order), order
        self.allowed = np.concatenate([self.allowed, np.zeros(more, np.bool_)])
        self.points = np.concatenate([self.points, np.full(more, NONE, np.int64)])
        self.points = np.where(self.points >= 0, self.points // NAMES * NAMES + order, NONE)
        self._steady = np.concatenate([self._steady, np.zeros(more)])
        self._total = np.concatenate([self._total, np.zeros(more)])
        for band in self._bands:
            band.grow(more)

    def _look_at_nodes(self, pod: PodFacts, book: Book, changed: Rows) -> None:
        self.allowed[changed] = False
        rows = changed[book.alive[changed]]
        allowed = np.ones(len(rows), np.bool_)
        for f in self.asked.node_filters:
            allowed &= answers(f, pod, book, rows)
        self.allowed[rows] = allowed
        self._steady[rows] = weighed(self.asked.node_scores, pod, book, rows)
        for band in self._bands:
            band.learn(rows, pod, book)

    def _look_at_room(self, pod: PodFacts, book: Book, rows: Rows) -> None:
        allowed = self.allowed[rows]
        self.points[rows] = NONE
        for band in self._bands:
            band.leave(rows)
        rows = rows[allowed]
        fits = room_for(self.asked, pod, book, rows)
        if not fits.all():
            rows = rows[fits]
        if len(rows):
            total = self._steady[rows] + weighed(self.asked.room_scores, pod, book, rows)
            self._total[rows] = total
            self.points[rows] = encoded(total, self._order[rows])
        if self._bands:
            self._normalise(pod, book, rows)

    def _normalise(self, pod: PodFacts, book: Book, rows: Rows) -> None:
        for band in self._bands:
            band.enter(rows, pod, book)
        if [band for band in self._bands if band.moved()]:
            rows = np.flatnonzero(self.points >= 0)
        if len(rows):
            total = self._total[rows]
            for band in self._bands:
                total = total + band.normal(rows)
            self.points[rows] = encoded(total, self._order[rows])

    def imagine(self, pod: PodFacts, book: Book, rows: Rows, times: Rows) -> Rows:
        """Points of rows with so many more of the pod, if no other pod comes or goes. Asked only of plugins of sums."""
        imagined, there = book.imagined(pod, rows, times), np.arange(len(rows))
        total = self._steady[rows] + weighed(self.asked.room_scores, pod, imagined, there)
        for band in self._bands:
            total = total + band.normal(rows)
        points = encoded(total, self._order[rows])
        points[~room_for(self.asked, pod, imagined, there)] = NONE
        return points

    @property
    def steady_bands(self) -> bool:
        """Whether nodes that fill up leave all normalised scores as they are."""
        return all(band.even for band in self._bands)

    def total(self, rows: Rows) -> Scores:
        """Of nodes that alone are left to choose from."""
        total = self._total[rows]
        for band in self._bands:
            total = total + band.among(rows)
        return total


class Band:
    """Raw scores that are normalised by the least and the largest of the nodes where a pod fits."""

    def __init__(self, scored: WeightedScore) -> None:
        self._plugin, self._weight = scored
        self._of_nodes = self._plugin.reach is Reach.NODE
        self._raw: Scores = np.zeros(0)
        self._low: Scores = np.zeros(0)  # raw, where the pod fits
        self._high: Scores = np.zeros(0)
        self._bounds = (math.inf, -math.inf)
        self._one = 0.0

    def grow(self, more: int) -> None:
        self._raw = np.concatenate([self._raw, np.zeros(more)])
        self._low = np.concatenate([self._low, np.full(more, math.inf)])
        self._high = np.concatenate([self._high, np.full(more, -math.inf)])

    def learn(self, rows: Rows, pod: PodFacts, book: Book) -> None:
        """Of nodes that are others: what holds whoever comes and goes there."""
        if self._of_nodes:
            self._raw[rows] = self._plugin.score(pod, book, rows)

    def leave(self, rows: Rows) -> None:
        self._low[rows], self._high[rows] = math.inf, -math.inf

    def enter(self, rows: Rows, pod: PodFacts, book: Book) -> None:
        if not self._of_nodes:
            self._raw[rows] = self._plugin.score(pod, book, rows)
        self._low[rows] = self._high[rows] = self._raw[rows]

    def moved(self) -> bool:
        before = self._bounds
        self._bounds = (float(self._low.min(initial=math.inf)), float(self._high.max(initial=-math.inf)))
        if before == self._bounds:
            return False
        if self.even:
            self._one = float(self._normalised(np.array(self._bounds))[0])
        return True

    @property
    def even(self) -> bool:
        return self._bounds[0] == self._bounds[1]

    def normal(self, rows: Rows) -> Scores | float:
        if self.even:
            return self._one
        return self._normalised(np.concatenate([self._raw[rows], self._bounds]))[:-2]

    def among(self, rows: Rows) -> Scores:
        """Of nodes that alone are left."""
        return self._normalised(self._raw[rows])

    def _normalised(self, raw: Scores) -> Scores:
        return normalised(self._plugin, raw) * self._weight


def answers(f: Filter, pod: PodFacts, book: Book, rows: Rows) -> Mask:
    mask = f.filter(pod, book, rows)
    if mask.shape != rows.shape or mask.dtype != np.bool_:
        raise ValueError(f"filter of {f.name} answers {mask.dtype}{mask.shape} about {len(rows)} nodes")
    return mask


def room_for(asked: Asked, pod: PodFacts, book: Book, rows: Rows) -> Mask:
    fits: Mask = np.ones(len(rows), np.bool_)
    for f in asked.room_filters:
        fits &= answers(f, pod, book, rows)
    return fits


def weighed(scores: Sequence[WeightedScore], pod: PodFacts, book: Book, rows: Rows) -> Scores:
    total = np.zeros(len(rows))
    for plugin, weight in scores:
        total += plugin.score(pod, book, rows) * weight
    return total


def normalised(plugin: Score, raw: Scores) -> Scores:
    return plugin.normalise(raw) if isinstance(plugin, Normalised) else raw


def encoded(total: Scores, order: Rows) -> Rows:
    if not np.isfinite(total).all():
        raise ValueError("a score is no number")
    parts: Rows = np.rint(np.clip(total * PARTS, 0, MOST_TOTAL)).astype(np.int64)
    return parts * NAMES + order
