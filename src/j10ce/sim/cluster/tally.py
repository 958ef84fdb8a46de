"""What became of owners, in sums: whoever goes is folded into its class, so that a million take no more room than one.

Availability of an owner: the share of its pods' time in which they ran. Starting counts as waiting, and so does the
running of a Job's pod that was killed before it was done.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.sim.cluster.given.scenario import Refund

FINE: Final = 10_000  # steps of availability that a class tells apart
POINT: Final = 0.01
MOST_OWNERS: Final = 1000  # that a result names: those that lack the most
CURVE: Final = 100  # steps of the curve from the worst to the best owner
HOUR_S: Final = 3600.0


class OwnerSums:
    """Of one owner, as they grow."""

    __slots__ = ("discarded", "lives", "preemptions", "running", "starts", "there", "unrun")

    def __init__(self) -> None:
        self.there = self.running = self.discarded = 0.0  # seconds of its pods
        self.lives = self.starts = self.preemptions = self.unrun = 0

    @property
    def availability(self) -> float:
        return (self.running - self.discarded) / self.there if self.there > 0 else 1.0


class OwnerResult(NamedTuple):
    """The worst first, in this order."""

    deficit: float
    name: str
    class_: str
    slo: float
    availability: float
    preemptions: int
    starts: int
    zero_runs: int
    penalty: float


class ClassSums:
    def __init__(self) -> None:
        self.owners = self.violating = self.short = self.lives = self.starts = self.preemptions = self.unrun = 0
        self.total = self.deficit = self.penalty = self.running = self.there = 0.0
        self.least, self.most = math.inf, -math.inf
        self.steps = Counter[int]()

    def add(self, sums: OwnerSums, slo: float, penalty: float) -> None:
        availability = sums.availability
        missing = max(0.0, slo - availability)
        self.owners += 1
        self.violating += missing > 1e-9
        self.short += missing > POINT
        self.total += availability
        self.deficit += missing
        self.penalty += penalty
        self.least, self.most = min(self.least, availability), max(self.most, availability)
        self.steps[round(availability * FINE)] += 1
        self.running += sums.running
        self.there += sums.there
        self.lives += sums.lives
        self.starts += sums.starts
        self.preemptions += sums.preemptions
        self.unrun += sums.unrun

    def results(self) -> dict[str, float]:
        n = self.owners or 1
        return {
            "owners": self.owners,
            "availability": self.total / n,
            "minimum": self.least if self.owners else 0.0,
            "maximum": self.most if self.owners else 0.0,
            "deficit": self.deficit / n,
            "gini": gini(self.steps),
            "belowSlo": self.violating,
            "belowByAPoint": self.short,
            "preemptions": self.preemptions,
            "starts": self.starts,
            "pods": self.lives,
            "zeroRuns": self.unrun,
            "penalty": self.penalty,
        }

    def curve(self) -> list[float]:
        """Availability from the worst owner to the best, at each hundredth of them."""
        ordered = sorted(self.steps.items())
        at, passed, points = 0, ordered[0][1] if ordered else 0, list[float]()
        for step in range(CURVE + 1) if ordered else ():
            wanted = step / CURVE * (self.owners - 1)
            while passed <= wanted and at + 1 < len(ordered):
                at += 1
                passed += ordered[at][1]
            points.append(ordered[at][0] / FINE)
        return points


class Tally:
    """Of one run."""

    def __init__(self, tariff: Sequence[Refund]) -> None:
        self.classes: dict[str, ClassSums] = {}
        self._tariff = sorted(tariff, key=lambda step: step.short)
        self._worst: list[tuple[float, int, OwnerResult]] = []

    def fold(self, name: str, class_: str, slo: float, price: float, sums: OwnerSums, number: int) -> None:
        """An owner that goes, or that is there at the end."""
        penalty = self._penalty(slo, price, sums)
        if class_ not in self.classes:
            self.classes[class_] = ClassSums()
        self.classes[class_].add(sums, slo, penalty)
        missing = max(0.0, slo - sums.availability)
        counts = (sums.preemptions, sums.starts, sums.unrun)
        result = OwnerResult(missing, name, class_, slo, sums.availability, *counts, penalty)
        if len(self._worst) < MOST_OWNERS:
            heapq.heappush(self._worst, (missing, -number, result))
        elif missing > self._worst[0][0]:
            heapq.heapreplace(self._worst, (missing, -number, result))

    def owners(self) -> list[OwnerResult]:
        """The worst first."""
        return [result for *_, result in sorted(self._worst, key=lambda w: (-w[0], -w[1]))]

    def _penalty(self, slo: float, price: float, sums: OwnerSums) -> float:
        """price × hours of its pods × the share that the tariff refunds for what is missing of the promise."""
        short = (slo - sums.availability) / slo if slo > 0 else 0.0
        shares = [step.share for step in self._tariff if short > step.short]
        return price * sums.there / HOUR_S * shares[-1] if shares else 0.0


def gini(steps: Mapping[int, int]) -> float:
    """How unequal values are, each as often as it is counted: 0 all the same, near 1 one has all."""
    n, whole, weighed, rank = sum(steps.values()), 0.0, 0.0, 0
    for value, times in sorted(steps.items()):
        whole += value * times
        weighed += value * (times * rank + times * (times + 1) / 2)
        rank += times
    return (2 * weighed / whole - (n + 1)) / n if whole > 0 else 0.0


def total(classes: Iterable[ClassSums], name: str) -> float:
    """Of one number of all classes."""
    return sum(of.results()[name] for of in classes)
