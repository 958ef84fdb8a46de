"""The peak to expect of each workload, and how much of what it asks for that leaves to others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Final

from j10ce.model.knob import TargetId
from j10ce.policy.predict import Checkpoint, Histogram

MOST: Final = 512  # workloads that are remembered: as many as a crowded node has
SAFETY: Final = 0.1  # on top of a peak, as for the whole node
Series = tuple[str, TargetId]  # resource, workload


class Peaks:
    """Histories of single workloads, by resource; `fresh` makes an empty one, or continues a kept one."""

    def __init__(self, fresh: Callable[[str, Checkpoint | None], Histogram], kept: Mapping[str, Checkpoint]) -> None:
        self._fresh = fresh
        self._kept = {name: point for name, point in kept.items() if name.partition(".")[2].startswith("workload/")}
        self._histograms: dict[Series, Histogram] = {}

    def learn(self, resource: str, uses: Mapping[TargetId, float], wall: float) -> None:
        """What each of them uses at present."""
        for target, use in islice(uses.items(), MOST):
            series = (resource, target)
            if series not in self._histograms:
                self._histograms[series] = self._fresh(resource, self._kept.pop(_name(series), None))
            self._histograms[series].add(use, wall)

    def keep_only(self, targets: Collection[TargetId]) -> None:
        for series in [s for s in self._histograms if s[1] not in targets]:
            del self._histograms[series]

    def spare(
        self, resource: str, asked: Mapping[TargetId, float], share: float, old_enough: Callable[[Histogram], bool]
    ) -> float:
        """What all of them leave of what they ask for, each by itself; a young one leaves nothing."""
        known = ((asked[t], h) for (r, t), h in self._histograms.items() if r == resource and t in asked)
        return sum(max(0.0, most - h.percentile(share) * (1 + SAFETY)) for most, h in known if old_enough(h))

    def checkpoints(self) -> dict[str, Checkpoint]:
        made = {_name(series): h.checkpoint() for series, h in self._histograms.items()}
        return {name: kept for name, kept in made.items() if kept is not None}


def _name(series: Series) -> str:
    return ".".join(series)
