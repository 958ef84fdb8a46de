"""Figures out of latencies: percentiles, ratios with their interval, isolation by second. Pure.

A *round* of an arm is a list of seconds, each with the latencies of the requests that were due in it. What is said of
an arm is the median over its rounds, so that one disturbed round does not decide.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

DRAWS: Final = 400
COVERED: Final = 0.90  # of the draws lie inside an interval
STEP: Final = 1.01  # latencies within 1 % of each other are one for an interval
_LEAST: Final = 1e-7

Second = Sequence[float]
Seconds = Sequence[Second]


class Interval(NamedTuple):
    """A ratio, and where 90 % of the ratios lie that other draws of the same rounds and seconds would have given."""

    middle: float
    low: float
    high: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of them; they are in ascending order, and there is one."""
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)]


def by_second(served: Iterable[tuple[float, float]], seconds: float) -> list[list[float]]:
    """Latencies out of pairs (due, took), by the second in which they were due; a last half joins the one before."""
    count = max(round(seconds), 1)
    made: list[list[float]] = [[] for _ in range(count)]
    for due, took in served:
        made[min(int(due), count - 1)].append(took)
    return [second for second in made if second]


def of_rounds(rounds: Sequence[Seconds], share: float) -> float:
    """The median over the rounds of a percentile of each."""
    return statistics.median(percentile(sorted(took for second in r for took in second), share) for r in rounds)


def ratio(arm: Sequence[Seconds], alone: Sequence[Seconds], share: float = 0.99, *, seed: int = 1) -> Interval:
    """Of an arm's percentile to that of the service alone; drawn anew are rounds, the same for both, and seconds."""
    chance = random.Random(seed)
    above, below = ([[_counted(second) for second in r] for r in rounds] for rounds in (arm, alone))
    drawn = []
    for _ in range(DRAWS):
        picked = [chance.randrange(min(len(above), len(below))) for _ in above]
        high, low = (statistics.median(_drawn(rounds[n], share, chance) for n in picked) for rounds in (above, below))
        drawn.append(high / low)
    middle = of_rounds(arm, share) / of_rounds(alone, share)
    drawn.sort()
    outside = (1 - COVERED) / 2
    low, high = percentile(drawn, outside), percentile(drawn, 1 - outside)
    return Interval(middle, min(low, middle), max(high, middle))


def worst_by_second(rounds: Sequence[Seconds], share: float = 0.99) -> list[float]:
    """The percentile of each second of all rounds, in their order."""
    return [percentile(sorted(second), share) for r in rounds for second in r]


def isolation(arm: Sequence[Seconds], alone: Sequence[Seconds]) -> tuple[float, float]:
    """(mean, 1st percentile) over the seconds of an arm of  min(1, p99 of a usual second alone ÷ its p99)."""
    usual = statistics.median(worst_by_second(alone))
    kept = sorted(min(1.0, usual / p99) for p99 in worst_by_second(arm))
    return statistics.fmean(kept), percentile(kept, 0.01)


def above(arm: Sequence[Seconds], alone: Sequence[Seconds], times: float) -> tuple[int, int]:
    """(seconds of an arm whose p99 is more than so many times that of the worst second alone, all its seconds)."""
    most, p99s = times * max(worst_by_second(alone)), worst_by_second(arm)
    return sum(p99 > most for p99 in p99s), len(p99s)


def _counted(second: Second) -> dict[int, int]:
    """How many latencies there are of each size, in steps of 1 %."""
    counts: dict[int, int] = {}
    for took in second:
        size = round(math.log(max(took, _LEAST), STEP))
        counts[size] = counts.get(size, 0) + 1
    return counts


def _drawn(seconds: Sequence[Mapping[int, int]], share: float, chance: random.Random) -> float:
    counts: dict[int, int] = {}
    for _ in seconds:
        for size, count in seconds[chance.randrange(len(seconds))].items():
            counts[size] = counts.get(size, 0) + count
    sizes = sorted(counts)
    wanted = math.ceil(share * sum(counts.values()))
    passed = accumulate(counts[size] for size in sizes)
    return math.pow(STEP, next(size for size, so_far in zip(sizes, passed, strict=True) if so_far >= wanted))
