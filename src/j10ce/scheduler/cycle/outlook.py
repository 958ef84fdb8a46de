"""How the pods of one shape stand with every node, kept from one of them to the next.

What a filter or a score of reach NODE answers holds until the node's object changes; what one of reach SUMS or ROOM
answers, until the row is touched. Each look asks anew about those rows alone.

    points = (⌊10000 · Σ weight · score⌋ + 2⁴¹) · 2²⁰ + how early the name stands in the alphabet;  −1: no fit
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Reach
from j10ce.scheduler.cycle.profile import Asked, Roster, WeightedScore

PARTS: Final = 10_000.0  # of a point: what is closer than that is equal
NAMES: Final = 1 << 20
MOST_TOTAL: Final = 2.0**41  # parts: with a name, within 64 bits
BELOW_ZERO: Final = (1 << 41) * NAMES  # scores of others may be
NONE: Final = -1


class Outlook:
    def __init__(self, roster: Roster, pod: PodFacts, book: Book) -> None:
        self.shape = pod.shape
        self.asked = roster.asked(pod, book)
        self.version = -1
        self.rows = 0
        self.allowed: Mask = np.zeros(0, np.bool_)  # by filters of reach NODE
        self.points: Rows = np.zeros(0, np.int64)
        self._everywhere = False  # whether all rows are allowed
        self._steady: Scores = np.zeros(0)  # weighed scores of reach NODE
        self._total: Scores = np.zeros(0)  # and of all others that are not normalised
        self._bands = [Band(s, roster.counts[id(s.plugin)]) for s in self.asked.normalised]
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
        self._everywhere = bool(self.allowed.all())
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
        self._everywhere = bool(self.allowed.all())
        self._steady[rows] = weighed(self.asked.node_scores, pod, book, rows)
        for band in self._bands:
            band.learn(rows, pod, book)
            band.level(self.allowed, self.points >= 0)

    def _look_at_room(self, pod: PodFacts, book: Book, rows: Rows) -> None:
        self.points[rows] = NONE
        for band in self._bands:
            band.leave(rows)
        if not self._everywhere and not (allowed := self.allowed[rows]).all():
            rows = rows[allowed]
        if not (fits := room_for(self.asked, pod, book, rows)).all():
            rows = rows[fits]
        total = self._weighed(pod, book, rows, rows) if len(rows) else np.zeros(0)
        if not self._bands:
            self.points[rows] = encoded(total, self._order[rows])
            return
        self._total[rows] = total
        for band in self._bands:
            band.enter(rows, pod, book)
        if [band for band in self._bands if band.moved()]:
            self.points[rows] = 0
            rows = np.flatnonzero(self.points >= 0)
        if len(rows):
            self.points[rows] = self._points(self._total[rows], rows)

    def _weighed(self, pod: PodFacts, book: Book, rows: Rows, kept: Rows) -> Scores:
        """Of all scores that are not normalised; `kept`: rows of what is remembered."""
        total = weighed(self.asked.room_scores, pod, book, rows)
        return total + self._steady[kept] if self.asked.node_scores else total

    def _points(self, total: Scores, rows: Rows) -> Rows:
        for band in self._bands:
            total = total + band.normal(rows)
        return encoded(total, self._order[rows])

    def imagine(self, pod: PodFacts, book: Book, rows: Rows, times: Rows) -> Rows:
        """Points of rows with so many more of the pod, if no other pod comes or goes. Asked only of plugins of sums."""
        imagined, there = book.imagined(pod, rows, times), np.arange(len(rows))
        points = self._points(self._weighed(pod, imagined, there, rows), rows)
        points[~room_for(self.asked, pod, imagined, there)] = NONE
        return points

    @property
    def steady_bands(self) -> bool:
        """Whether nodes that fill up leave all normalised scores as they are."""
        return all(band.even for band in self._bands)

    def total(self, rows: Rows) -> Scores:
        """Of nodes that alone are left to choose from."""
        if not self._bands:
            return (self.points[rows] - BELOW_ZERO) // NAMES / PARTS
        total = self._total[rows]
        for band in self._bands:
            total = total + band.among(rows)
        return total


class Band:
    """Raw scores that are normalised by the least and the largest of the nodes where a pod fits."""

    def __init__(self, scored: WeightedScore, normalised: Callable[[Scores], Scores]) -> None:
        self._plugin, self._normalised = scored.plugin, normalised
        self._of_nodes = self._plugin.reach is Reach.NODE
        self._raw: Scores = np.zeros(0)
        self._low: Scores = np.zeros(0)  # raw, where the pod fits
        self._high: Scores = np.zeros(0)
        self._bounds = (math.inf, -math.inf)
        self._one = 0.0  # what all get, where all are equal
        self._flat = False  # whichever nodes are left, they are equal
        self._shifted = False  # and to something else than before

    def grow(self, more: int) -> None:
        self._raw = np.concatenate([self._raw, np.zeros(more)])
        self._low = np.concatenate([self._low, np.full(more, math.inf)])
        self._high = np.concatenate([self._high, np.full(more, -math.inf)])

    def learn(self, rows: Rows, pod: PodFacts, book: Book) -> None:
        """Of nodes that are others: what holds whoever comes and goes there."""
        if self._of_nodes:
            self._raw[rows] = self._plugin.score(pod, book, rows)

    def level(self, allowed: Mask, fits: Mask) -> None:
        """Nodes have changed. While all that are allowed are equal, nobody is kept account of."""
        if not self._of_nodes:
            return
        raw, before = self._raw[allowed], self._bounds
        was_flat, self._flat = self._flat, len(raw) > 0 and bool((raw == raw[0]).all())
        if self._flat:
            self._bounds = (float(raw[0]), float(raw[0]))
            self._one = float(self._normalised(raw[:1])[0])
            self._shifted |= before != self._bounds
        elif was_flat:
            self._bounds = (math.nan, math.nan)  # to be looked at
            self._low, self._high = np.where(fits, self._raw, math.inf), np.where(fits, self._raw, -math.inf)

    def leave(self, rows: Rows) -> None:
        if not self._flat:
            self._low[rows], self._high[rows] = math.inf, -math.inf

    def enter(self, rows: Rows, pod: PodFacts, book: Book) -> None:
        if self._flat:
            return
        if not self._of_nodes:
            self._raw[rows] = self._plugin.score(pod, book, rows)
        self._low[rows] = self._high[rows] = self._raw[rows]

    def moved(self) -> bool:
        """Whether the least or the largest is another, and so what all get."""
        if self._flat:
            shifted, self._shifted = self._shifted, False
            return shifted
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


def answers(f: Filter, pod: PodFacts, book: Book, rows: Rows) -> Mask:
    mask = f.filter(pod, book, rows)
    if mask.shape != rows.shape or mask.dtype != np.bool_:
        raise ValueError(f"filter of {f.name} answers {mask.dtype}{mask.shape} about {len(rows)} nodes")
    return mask


def room_for(asked: Asked, pod: PodFacts, book: Book, rows: Rows) -> Mask:
    fits: Mask | None = None
    for f in asked.room_filters:
        mask = answers(f, pod, book, rows)
        fits = mask if fits is None else fits & mask
    return np.ones(len(rows), np.bool_) if fits is None else fits


def weighed(scores: Sequence[WeightedScore], pod: PodFacts, book: Book, rows: Rows) -> Scores:
    total: Scores | None = None
    for plugin, weight in scores:
        points = plugin.score(pod, book, rows)
        if weight != 1.0:
            points = points * weight
        total = points if total is None else total + points
    return np.zeros(len(rows)) if total is None else total


def score_of(points: int) -> float:
    return (points - BELOW_ZERO) // NAMES / PARTS


def encoded(total: Scores, order: Rows) -> Rows:
    parts = np.rint(total * PARTS)
    # No product of BLAS: of more than 10,000 numbers it starts threads, which cost 50 times as much as they save.
    if not np.abs(parts).max(initial=0.0) <= MOST_TOTAL:  # which no number is that is not one
        if not np.isfinite(parts).all():
            raise ValueError("a score is no number")
        parts = np.clip(parts, -MOST_TOTAL, MOST_TOTAL)
    points: Rows = parts.astype(np.int64) * NAMES
    points += order + BELOW_ZERO
    return points
