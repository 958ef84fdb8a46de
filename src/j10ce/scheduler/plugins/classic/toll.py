"""What a node costs: who has to go there, and how they can bear it. Which node costs the least.

One without victims is taken at once. Else by the importance of those in contention, the most important first: where
they are the least below the margin; then where all victims together are the furthest above it; then by the number of
victims, and by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from j10ce.scheduler.plugins.classic.standing import Rival

GENERAL: Final = -1.0  # a class below every importance


class Leaving(NamedTuple):
    uid: str
    slo: float
    bears: float  # how far its metric is above the margin; 0, where its owner gains nothing by it


class Toll(NamedTuple):
    node: str
    victims: tuple[Leaving, ...]


def bears(metric: float, contributing: bool, margin: float) -> float:
    return metric - margin if contributing else 0.0


def victim(of: Rival, margin: float) -> Leaving:
    return Leaving(of.pod.uid, of.measure.slo, bears(of.measure.metric, of.measure.contributing, margin))


def cheapest(tolls: Sequence[Toll]) -> Toll:
    left = [toll for toll in tolls if not toll.victims] or list(tolls)
    scores = {toll.node: classes(toll.victims) for toll in left}
    known = {importance for score in scores.values() for importance in score}
    for importance in sorted(known, reverse=True):
        scored = partial(_of_class, scores, importance)
        most = max(map(scored, left))
        left = [toll for toll in left if scored(toll) == most]
    return min(left, key=lambda toll: (len(toll.victims), toll.node))


def classes(victims: Iterable[Leaving]) -> dict[float, float]:
    """By importance: how far those in contention are below the margin; and in general, what all of them have."""
    score = defaultdict[float, float](float)
    for each in victims:
        score[GENERAL] += each.bears
        if each.bears < 0:
            score[each.slo] += each.bears
    return score


def _of_class(scores: dict[str, dict[float, float]], importance: float, toll: Toll) -> float:
    return scores[toll.node].get(importance, 0.0)
