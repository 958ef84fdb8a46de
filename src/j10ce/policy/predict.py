"""The peak to expect of a series: a percentile of its history, in which the past counts less and less.

Samples fall into buckets that grow by a fixed ratio; a sample's weight doubles with every half-life, so that older ones
fade without being touched. The answer is the end of a bucket: never below the true percentile, and at most one bucket
above it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from j10ce.model.kinds import Strict

FURTHEST: Final = 100  # half-lives from the reference to the newest sample; then the reference moves
FADED: Final = 1e-4  # of the heaviest bucket: what counts less is forgotten
KEPT_WEIGHT: Final = 10_000  # of the heaviest bucket in a checkpoint


class Buckets(NamedTuple):
    """Where bucket n begins: first · (ratioⁿ − 1) / (ratio − 1)."""

    first: float
    ratio: float
    most: float  # values above it share the last bucket

    @property
    def last(self) -> int:
        return math.ceil(math.log(self.most * (self.ratio - 1) / self.first + 1, self.ratio))

    def start(self, n: int) -> float:
        return float(self.first * (self.ratio**n - 1) / (self.ratio - 1))

    def find(self, value: float) -> int:
        if value < self.first:
            return 0
        n = int(math.log(value * (self.ratio - 1) / self.first + 1, self.ratio))
        # A logarithm is off by a little right at the edges.
        n += (value >= self.start(n + 1)) - (value < self.start(n))
        return min(n, self.last)


CPU_BUCKETS: Final = Buckets(0.025, 1.05, 1024.0)  # CPUs
MEMORY_BUCKETS: Final = Buckets(float(5 << 20), 1.05, float(1 << 41))  # bytes


class Checkpoint(Strict, frozen=True, kw_only=True):
    """A histogram on its way through a restart."""

    reference: float
    since: float
    newest: float = -math.inf  # wall clock of the last sample
    weights: tuple[tuple[int, float], ...]  # bucket, weight


class Histogram:
    def __init__(self, buckets: Buckets, half_life_s: float, kept: Checkpoint | None = None) -> None:
        self._buckets = buckets
        self._half_life_s = half_life_s
        self._reference = kept.reference if kept else -math.inf
        self.since = kept.since if kept else math.inf  # wall clock of the first sample
        self._newest = kept.newest if kept else -math.inf
        self._weights: dict[int, float] = dict(kept.weights) if kept else {}

    def add(self, value: float, wall: float) -> None:
        self._set_back(self._newest - wall)
        self.since, self._newest = min(self.since, wall), wall
        if wall - self._reference > FURTHEST * self._half_life_s:
            self._move(wall)
        n = self._buckets.find(value)
        self._weights[n] = self._weights.get(n, 0.0) + 2.0 ** max(-1000.0, self._age(wall))

    def percentile(self, share: float) -> float:
        """The end of the bucket in which that share of all weight is reached; 0 while there is nothing."""
        total, seen = math.fsum(self._weights.values()), 0.0
        for n in sorted(self._weights):
            seen += self._weights[n]
            if seen >= share * total * (1 - 1e-12):
                return self._buckets.start(min(n + 1, self._buckets.last))
        return 0.0

    def checkpoint(self) -> Checkpoint | None:
        """Weights relative to the heaviest, without what has faded; None while there is nothing."""
        heaviest = max(self._weights.values(), default=0.0)
        if not heaviest:
            return None
        scaled = {n: w / heaviest for n, w in self._weights.items()}
        kept = tuple((n, round(w * KEPT_WEIGHT, 3)) for n, w in sorted(scaled.items()) if w >= FADED)
        # The scale is worth so many half-lives, and the next samples must be weighed on it.
        return Checkpoint(
            reference=self._reference + self._half_life_s * math.log2(heaviest / KEPT_WEIGHT),
            since=self.since,
            newest=self._newest,
            weights=kept,
        )

    def _set_back(self, by_s: float) -> None:
        """A clock that was ahead is right now: what it dated is the past all the same, and as long ago as it was."""
        if by_s > 0:
            self._reference -= by_s
            self.since -= by_s

    def _age(self, wall: float) -> float:
        """In half-lives after the reference."""
        return (wall - self._reference) / self._half_life_s

    def _move(self, wall: float) -> None:
        """Let the reference be the present half-life, and every weight follow."""
        fresh = math.floor(wall / self._half_life_s) * self._half_life_s
        scale = 0.0 if math.isinf(self._reference) else 2.0 ** max(-1000.0, -self._age(fresh))
        self._weights = {n: w * scale for n, w in self._weights.items() if w * scale > 0.0}
        self._reference = fresh
