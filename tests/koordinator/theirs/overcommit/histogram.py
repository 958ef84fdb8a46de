"""A history in buckets, in which the past counts less and less, literally.

Buckets and the idea are those of `policy/predict`; here weights may be taken away again, buckets may have one size, and
what weighs less than an absolute epsilon at either end counts as empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from j10ce.policy.predict import CPU_BUCKETS, FURTHEST, MEMORY_BUCKETS, Buckets

EPSILON: Final = 1e-4
KEPT_WEIGHT: Final = 10_000  # of the heaviest bucket in a checkpoint


class Scale(Protocol):
    """Where buckets begin."""

    @property
    def last(self) -> int: ...

    def start(self, n: int, /) -> float: ...

    def find(self, value: float, /) -> int: ...


class EvenBuckets(NamedTuple):
    """All of one size."""

    size: float
    most: float

    @property
    def last(self) -> int:
        return math.ceil(self.most / self.size)

    def start(self, n: int, /) -> float:
        return n * self.size

    def find(self, value: float, /) -> int:
        return min(max(int(value / self.size), 0), self.last)


_: tuple[Scale, ...] = (EvenBuckets(1, 10), Buckets(1, 1.05, 10))
CPU: Final = CPU_BUCKETS
MEMORY: Final = MEMORY_BUCKETS


class History(NamedTuple):
    """Weights by bucket, relative to a reference time; without a half-life nothing fades."""

    scale: Scale
    half_life_s: float | None = None
    epsilon: float = EPSILON
    reference_s: float | None = None
    weights: Mapping[int, float] = {}

    @property
    def empty(self) -> bool:
        return all(weight < self.epsilon for weight in self.weights.values())


def added(history: History, value: float, weight: float, at_s: float = 0.0) -> History:
    """With a sample; a weight below zero takes one away, and no bucket falls below nothing."""
    moved = _referenced(history, at_s)
    n = moved.scale.find(value)
    heavier = max(0.0, moved.weights.get(n, 0.0) + weight * _decay(moved, at_s))
    return moved._replace(weights={**moved.weights, n: heavier})


def merged(history: History, other: History) -> History:
    """Both histories as one; they have the same buckets and fade alike."""
    if not other.weights:
        return history
    at_s = max(history.reference_s or 0.0, other.reference_s or 0.0)
    one, two = (_rescaled(h, at_s) if h.half_life_s else h for h in (history, other))
    sums = {n: one.weights.get(n, 0.0) + two.weights.get(n, 0.0) for n in one.weights.keys() | two.weights.keys()}
    return one._replace(weights=sums)


def percentile(history: History, share: float) -> float:
    """The end of the bucket where that share of all weight is reached; of the last one its start; 0 of nothing."""
    heavy = [n for n, weight in history.weights.items() if weight >= history.epsilon]
    if not heavy:
        return 0.0
    total = math.fsum(history.weights.values())
    reached, n = 0.0, min(heavy)
    for n in range(min(heavy), max(heavy) + 1):
        reached += history.weights.get(n, 0.0)
        if reached >= share * total:
            break
    return history.scale.start(min(n + 1, history.scale.last))


def checkpoint(history: History) -> dict[int, int]:
    """Weights as whole numbers, halves up, the heaviest 10,000; what rounds to nothing is left out."""
    heaviest = max(history.weights.values(), default=0.0)
    if heaviest < history.epsilon:
        return {}
    scaled = {n: math.floor(weight * KEPT_WEIGHT / heaviest + 0.5) for n, weight in sorted(history.weights.items())}
    return {n: weight for n, weight in scaled.items() if weight}


def _referenced(history: History, at_s: float) -> History:
    """With a reference that is near enough for numbers to stay in range."""
    half_life = history.half_life_s
    if half_life is None:
        return history
    if history.reference_s is None:
        return history._replace(reference_s=_rounded(at_s, half_life))
    far = at_s - history.reference_s > FURTHEST * half_life
    return _rescaled(history, _rounded(at_s, half_life)) if far else history


def _rescaled(history: History, reference_s: float) -> History:
    age = (history.reference_s if history.reference_s is not None else reference_s) - reference_s
    factor = _power(age / history.half_life_s) if history.half_life_s else 1.0
    return history._replace(reference_s=reference_s, weights={n: w * factor for n, w in history.weights.items()})


def _decay(history: History, at_s: float) -> float:
    if history.half_life_s is None or history.reference_s is None:
        return 1.0
    return _power((at_s - history.reference_s) / history.half_life_s)


def _power(half_lives: float) -> float:
    return math.pow(2.0, min(max(half_lives, -1000.0), 1000.0))


def _rounded(at_s: float, half_life_s: float) -> float:
    """To a multiple of the half-life, halves up."""
    return math.floor(at_s / half_life_s + 0.5) * half_life_s
