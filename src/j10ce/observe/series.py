"""Every series of a node, and the windows that controllers look at it through."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import cycle
from typing import Final

from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Readings, Window
from j10ce.observe.ring import MERGED, STEP_S, Point, Series, Slot, quantile, rank


class SeriesBook:
    """All series, by target and metric. Written by the ring's thread only."""

    def __init__(self) -> None:
        self._series: dict[TargetId, dict[str, Series]] = {}
        # Slots of different series close at different ticks, so that no tick pays for all of them.
        self._phases = cycle(range(STEP_S * MERGED))

    def add(self, now: float, target: TargetId, metric: str, value: float) -> None:
        metrics = self._series.get(target)
        if metrics is None:
            metrics = self._series[target] = {}
        series = metrics.get(metric)
        if series is None:
            series = metrics[metric] = Series(next(self._phases))
        series.add(now, value)

    def keep_only(self, targets: Collection[TargetId]) -> None:
        for gone in self._series.keys() - targets:
            del self._series[gone]

    def series(self, target: TargetId, metric: str) -> Series | None:
        return self._series.get(target, {}).get(metric)

    def at(self, now: float) -> AsOf:
        return AsOf(self, now)


class AsOf:
    """The book as it was at one instant, for as long as the rings have not gone round."""

    def __init__(self, book: SeriesBook, now: float) -> None:
        self._book = book
        self._now = now
        self._windows: dict[tuple[TargetId, str, float], Window] = {}

    def window(self, target: TargetId, metric: str, span_s: float) -> Window:
        key = (target, metric, span_s)
        window = self._windows.get(key)
        if window is None:
            series = self._book.series(target, metric)
            window = self._windows[key] = EMPTY if series is None else Span(series, self._now - span_s, self._now)
        return window

    def timed(self, target: TargetId, metric: str, span_s: float) -> Sequence[tuple[float, float]]:
        series = self._book.series(target, metric)
        return series.timed(self._now - span_s, self._now) if series else ()


class Span:
    """A window on one series: exact while its samples are kept, else rounded up to whole slots and to their bins."""

    def __init__(self, series: Series, since: float, until: float) -> None:
        self._series = series
        self._since = since
        self._until = until

    def last(self) -> float | None:
        return self._values[-1] if self._values else None

    def mean(self) -> float | None:
        count = len(self)
        return (sum(s.mean * s.total for s in self._slots) + math.fsum(self._values)) / count if count else None

    def peak(self) -> float | None:
        return self._points[-1][0] if self._slots else max(self._values, default=None)

    def quantile(self, q: float) -> float | None:
        if self._slots:
            return quantile(self._points, len(self), q)
        return self._sorted[rank(q, len(self._sorted)) - 1] if self._sorted else None

    def __len__(self) -> int:
        return len(self._values) + sum(slot.total for slot in self._slots)

    @cached_property
    def _slots(self) -> Sequence[Slot]:
        return self._series.slots(self._since)

    @cached_property
    def _values(self) -> Sequence[float]:
        since = self._slots[-1].end if self._slots else self._since
        return self._series.samples(since, self._until)

    @cached_property
    def _sorted(self) -> list[float]:
        return sorted(self._values)

    @cached_property
    def _points(self) -> list[Point]:
        return sorted([*(p for slot in self._slots for p in slot.points), *((v, 1) for v in self._values)])


EMPTY: Final[Window] = Span(Series(), 0.0, 0.0)
_: Readings = AsOf(SeriesBook(), 0.0)
