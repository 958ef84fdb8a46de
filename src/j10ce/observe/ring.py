"""One measured number over time, in rings that forget gracefully: samples for 2 min, then slots of 10 s, then of 60 s.

A slot keeps the count, the mean, and the values at the upper edges of six bins of its sorted samples. A quantile over
slots is therefore never below the true one, and at most one bin above it (two in 60 s slots, which are merged from
10 s slots): for a promise the safe side. The last edge is the maximum; slots are held in single precision.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

FINE: Final = 120  # samples at most, and seconds that they need to reach back
FEWEST: Final = 24  # samples kept of a series with a slow cadence
SLOTS: Final = 60  # of each coarser tier
STEP_S: Final = 10  # the length of a slot of the first
MERGED: Final = 6  # of its slots make one of the second
EDGES: Final = (0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
WIDTH: Final = 2 + len(EDGES)  # mean, count, the value at each edge

Point: TypeAlias = tuple[float, int]  # a value, and how many samples are represented by it


class Slot(NamedTuple):
    end: float
    mean: float
    total: int  # samples
    points: Sequence[Point]  # ascending


class Series:
    """Flat arrays, 5.7 KiB when every tier is full; a slow cadence keeps fewer samples and 1.5 KiB less."""

    __slots__ = ("_at", "_due", "_fine", "_first", "_growing", "_last", "_long", "_next", "_open", "_phase", "_short")

    def __init__(self, phase_s: int = 0) -> None:
        """`phase_s` shifts the borders of the slots, so that many series do not all close theirs at one instant."""
        self._fine = array("d")  # time, value, time, value, …: one slice copies both, whoever writes meanwhile
        self._next = 0  # where the next pair goes
        self._growing = True  # until the samples reach back far enough; then the oldest is overwritten
        self._last = -math.inf
        self._open = 0  # samples in the open slot,
        self._at = 0  # its number, counted from time 0,
        self._due = -math.inf  # and its end
        self._first = 0  # number of the first slot ever
        self._phase = phase_s
        self._short: _Tier | None = None
        self._long: _Tier | None = None

    def add(self, now: float, value: float) -> None:
        """Take one sample; a time that does not move forward is not one."""
        if now <= self._last:
            return
        if now >= self._due:
            self._turn(now)
        fine = self._fine
        if self._growing:
            fine.extend((now, value))
            self._growing = len(fine) < 2 * FEWEST or (len(fine) < 2 * FINE and fine[0] > now - FINE)
        else:
            at = self._next
            fine[at] = now
            fine[at + 1] = value
            at += 2
            self._next = at if at < len(fine) else 0
        self._open += 1
        self._last = now

    def _turn(self, now: float) -> None:
        """Close the open slot, and open the one that `now` is in."""
        following = int((now + self._phase) // STEP_S)
        if self._open:
            self._close()
            if following // MERGED != self._at // MERGED:
                self._merge(self._at // MERGED)
        else:
            self._first = following
        self._open = 0
        self._at = following
        self._due = self._end(following)

    def _close(self) -> None:
        values = sorted(self._newest(self._open))
        count = len(values)
        self._short = self._short or _Tier()
        self._short.put(self._at, sum(values) / count, count, [values[rank - 1] for rank in _ranks(count)])

    def _merge(self, number: int) -> None:
        slots = list(self._slots(self._short, number * MERGED))
        total = sum(slot.total for slot in slots)
        mean = sum(slot.mean * slot.total for slot in slots) / total
        points = sorted(p for slot in slots for p in slot.points)
        self._long = self._long or _Tier()
        self._long.put(number, mean, total, list(_at_ranks(points, _ranks(total))))

    def _newest(self, count: int) -> array[float]:
        end = self._next or len(self._fine)
        first = end - min(2 * count, len(self._fine))
        if first >= 0:
            return self._fine[first + 1 : end : 2]
        return self._fine[first + 1 :: 2] + self._fine[1:end:2]

    def samples(self, since: float, until: float = math.inf) -> array[float]:
        """The values from `since` to `until`, as far as they are kept, oldest first."""
        return self._between(since, until)[1::2]

    def timed(self, since: float, until: float = math.inf) -> list[tuple[float, float]]:
        """The same samples, each with its time."""
        pairs = self._between(since, until)
        return list(zip(pairs[0::2], pairs[1::2], strict=True))

    def _between(self, since: float, until: float) -> array[float]:
        ring, at = self._fine[:], self._next
        if at:
            ring = ring[at:] + ring[:at]
        times = ring[0::2]
        return ring[2 * bisect_left(times, since) : 2 * bisect_right(times, until)]

    def slots(self, since: float) -> list[Slot]:
        """What samples no longer say about the time from `since` on: nothing while they go back so far.

        The shortest slots that go back so far, oldest first; samples continue where the last of them ends.
        The first may begin before `since`, by less than its length.
        """
        if self._growing or self._fine[self._next] <= since:
            return []
        wanted = max(self._first, int((since + self._phase) // STEP_S)) if since > -math.inf else self._first
        if wanted > self._at - SLOTS or self._long is None:
            return list(self._slots(self._short, wanted))
        older = list(self._slots(self._long, wanted // MERGED))
        return older + list(self._slots(self._short, (self._long.newest + 1) * MERGED))

    def _slots(self, tier: _Tier | None, number: int) -> Iterator[Slot]:
        """The slots of a tier from that number on."""
        if tier is not None:
            length = 1 if tier is self._short else MERGED
            for n in range(max(number, tier.newest - SLOTS + 1), tier.newest + 1):
                mean, total, *values = tier.get(n)
                if total:
                    points = list(zip(values, _weights(int(total)), strict=True))
                    yield Slot(self._end((n + 1) * length - 1), mean, int(total), points)

    def _end(self, number: int) -> float:
        return float((number + 1) * STEP_S - self._phase)


class _Tier:
    """A ring of slots by their number. Allocated whole: arrays that grow leave holes in the heap."""

    __slots__ = ("_numbers", "newest")

    def __init__(self) -> None:
        self._numbers = array("f", bytes(4 * SLOTS * WIDTH))
        self.newest = -1

    def put(self, number: int, mean: float, total: int, values: Sequence[float]) -> None:
        for skipped in range(max(self.newest + 1, number - SLOTS + 1), number):
            self._numbers[skipped % SLOTS * WIDTH + 1] = 0.0
        at = number % SLOTS * WIDTH
        self._numbers[at : at + WIDTH] = array("f", (mean, total, *values))
        self.newest = number

    def get(self, number: int) -> array[float]:
        at = number % SLOTS * WIDTH
        return self._numbers[at : at + WIDTH]


@lru_cache(maxsize=256)
def _ranks(total: int) -> tuple[int, ...]:
    return tuple(rank(edge, total) for edge in EDGES)


@lru_cache(maxsize=256)
def _weights(total: int) -> tuple[int, ...]:
    """How many of `total` samples each bin holds."""
    return tuple(here - below for below, here in pairwise((0, *_ranks(total))))


def rank(q: float, count: int) -> int:
    """How many samples, of `count`, the quantile `q` must reach: 1 to `count`, whatever rounding does to q × count."""
    return min(count, max(1, math.ceil(q * count - 1e-9)))


def quantile(points: Iterable[Point], total: int, q: float) -> float:
    """The smallest value that the fraction `q` of `total` samples does not exceed. `points` ascend."""
    return next(_at_ranks(points, (rank(q, total),)))


def _at_ranks(points: Iterable[Point], ranks: Iterable[int]) -> Iterator[float]:
    """The value at each rank; ranks ascend."""
    ahead, seen, value = iter(points), 0, math.nan
    for wanted in ranks:
        while seen < wanted:
            value, weight = next(ahead)
            seen += weight
        yield value
