"""Names the antagonists of one victim: those whose use of the contested resource moves with its suffering.

Of every suspect three things are asked over the last minute, interval by interval:
    correlation of ranks of the victim's suffering and the suspect's use, at once or one interval later
    effect      how much more it uses in the third of the time in which the victim suffers most than in the best third
    overlap     in how much of that third it uses more than halfway between the two
The victim itself is a suspect, too: whose own load is why it waits suffers from nobody. Who suffers all the time, so
that nothing moves, has as antagonist whoever alone holds half of what there is, and twice as much as the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.control.interference.correlation import TimedValue, aligned, mean_at, rank_correlation, thirds
from j10ce.model.knob import TargetId

FEWEST: Final = 8  # intervals
LEAST_CORRELATION: Final = 0.5
LEAST_OVERLAP: Final = 0.6
LEAST_SHARE: Final = 0.25  # of what all suspects use more
LEAST_PART: Final = 0.5  # of the largest effect: nobody is named beside one that had twice as much, and is not sure
MOST_NAMED: Final = 3
STEADY_PART: Final = 0.5  # of the capacity
STEADY_LEAD: Final = 2.0  # times what the next one holds


class Case(NamedTuple):
    """One victim and one resource."""

    victim: TargetId
    suffering: Sequence[TimedValue]  # each a mean since the one before
    uses: Mapping[TargetId, Sequence[TimedValue]]  # of the victim, too
    bad: float  # from which on it suffers
    least_rise: float  # of the suffering, between its best and its worst third
    least_effect: float  # of a suspect's use, likewise
    capacity: float = math.inf  # of what is used; infinite where a steady use says nothing


class Evidence(NamedTuple):
    """Why one suspect is named."""

    suspect: TargetId
    correlation: float  # 0: it holds most of the resource all the time
    effect: float  # in the unit of its use
    overlap: float
    samples: int
    score: float


def antagonists(case: Case) -> list[Evidence]:
    """The most suspect first; none where there is too little to tell, or the victim itself is the first."""
    if len(case.suffering) <= FEWEST:
        return []
    levels = [value for _, value in case.suffering[1:]]
    uses = {t: means for t, use in case.uses.items() if (means := aligned(case.suffering, use)) is not None}
    low, high = thirds(levels)
    if mean_at(levels, high) - mean_at(levels, low) >= case.least_rise:
        named = _moving(case, levels, uses)
    elif mean_at(levels, low) >= case.bad:
        named = _steady(case, uses, len(levels))
    else:
        return []
    if not named or named[0].suspect == case.victim:
        return []
    return [e for e in named if e.suspect != case.victim][:MOST_NAMED]


def _moving(case: Case, levels: Sequence[float], uses: Mapping[TargetId, Sequence[float]]) -> list[Evidence]:
    every = {target: _contrast(levels, means) for target, means in uses.items()}
    total = math.fsum(c.effect for c in every.values() if c.effect > 0)
    largest = max((c.effect for c in every.values()), default=0.0)
    least = max(case.least_effect, LEAST_SHARE * total, LEAST_PART * largest)  # few are left to be compared wholly
    large = {t: c for t, c in every.items() if c.effect >= least and c.overlap >= LEAST_OVERLAP}
    compared = [_compared(t, c, levels[c.lag :], uses[t], total) for t, c in large.items()]
    return sorted((e for e in compared if e.correlation >= LEAST_CORRELATION), key=lambda e: (-e.score, e.suspect))


class Contrast(NamedTuple):
    """How much more is used in the worst third of the time than in the best."""

    effect: float
    overlap: float
    lag: int  # intervals by which the suffering comes later


def _contrast(levels: Sequence[float], use: Sequence[float]) -> Contrast:
    return max((_at_lag(levels, use, lag) for lag in (0, 1)), key=lambda c: (c.effect, -c.lag))


def _at_lag(levels: Sequence[float], use: Sequence[float], lag: int) -> Contrast:
    low, high = thirds(levels[lag:])
    least, most = mean_at(use, low), mean_at(use, high)
    overlap = sum(use[n] > (least + most) / 2 for n in high) / len(high)
    return Contrast(most - least, overlap, lag)


def _compared(t: TargetId, c: Contrast, levels: Sequence[float], use: Sequence[float], total: float) -> Evidence:
    correlation = rank_correlation(levels, use[: len(levels)])
    return Evidence(t, correlation, c.effect, c.overlap, len(levels), correlation * c.effect / total)


def _steady(case: Case, uses: Mapping[TargetId, Sequence[float]], samples: int) -> list[Evidence]:
    held = sorted(((math.fsum(use) / len(use), target) for target, use in uses.items()), reverse=True)
    if not held:
        return []
    most, target = held[0]
    lead = most >= STEADY_LEAD * held[1][0] if len(held) > 1 else True
    alone = lead and most >= STEADY_PART * case.capacity
    return [Evidence(target, 0.0, most, 1.0, samples, 1.0)] if alone else []
