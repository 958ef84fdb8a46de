"""Sums of an owner that needs all its pods at a time: what runs while too few do is discarded.

Pods start a little earlier than it is seen. So the last minutes are kept edge by edge, and only what is older is
folded; an edge that is even later counts from where the fold ends.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

LATE: Final = 300.0  # seconds after which no edge is expected any more


class Edge(NamedTuple):
    at: float
    online: int = 0  # so many more
    slots: int = 0  # so many more are needed


class Online:
    __slots__ = ("_edges", "_needed", "_since", "_tail", "discarded", "effective", "known", "needed", "online", "since")

    def __init__(
        self, slots: int, known: float, effective: float = 0.0, discarded: float = 0.0, online: int = 0
    ) -> None:
        self.known = known  # since when it is followed
        self.effective, self.discarded = effective, discarded  # up to `since`
        self.since = known
        self.online, self.needed = online, slots  # at `since`
        self._edges: list[Edge] = []
        self._tail, self._needed = (effective, discarded, known, online), slots  # the same with all edges

    def moved(self, at: float, online: int = 0, slots: int = 0, now: float | None = None) -> None:
        """Pods came or went, or more or fewer are needed."""
        if not self._edges and not self.online and not (self.effective or self.discarded):
            self.since = min(at, self.since)
        edge = Edge(max(at, self.since), online, slots)
        place = bisect_right(self._edges, edge.at, key=_at)
        self._edges.insert(place, edge)
        self._fold(at if now is None else now)
        self._settle()

    def sums(self, now: float) -> tuple[float, float]:
        """Effective and discarded."""
        effective, discarded, until, online = self._tail
        gained = online * max(now - until, 0.0)
        if online >= self._needed:
            return effective + gained, discarded
        return effective, discarded + gained

    @property
    def slots(self) -> int:
        return self._needed

    def _fold(self, now: float) -> None:
        if now - self.known < LATE:
            return
        old = bisect_right(self._edges, now - LATE, key=_at)
        for edge in self._edges[:old]:
            self.effective, self.discarded, self.since, self.online, self.needed = self._after(
                (self.effective, self.discarded, self.since, self.online, self.needed), edge
            )
        del self._edges[:old]

    def _settle(self) -> None:
        state = (self.effective, self.discarded, self.since, self.online, self.needed)
        for edge in self._edges:
            state = self._after(state, edge)
        self._tail, self._needed = state[:4], state[4]

    @staticmethod
    def _after(state: tuple[float, float, float, int, int], edge: Edge) -> tuple[float, float, float, int, int]:
        effective, discarded, since, online, needed = state
        gained = online * (edge.at - since)
        if online >= needed:
            effective += gained
        else:
            discarded += gained
        return effective, discarded, edge.at, online + edge.online, needed + edge.slots


def _at(edge: Edge) -> float:
    return edge.at
