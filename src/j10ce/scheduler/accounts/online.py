"""Sums of an owner that needs all its pods at a time: what runs while too few do is discarded.

Pods start a little earlier than it is seen. So the last minutes are kept edge by edge, and only what is older is
folded; an edge that is even later counts from where the fold ends.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple, TypeAlias

LATE: Final = 300.0  # seconds after which no edge is expected any more


class Edge(NamedTuple):
    at: float
    online: int = 0  # so many more
    slots: int = 0  # so many more are needed


State: TypeAlias = tuple[float, float, float, int, int]  # effective and discarded until when; online and needed since


class Online:
    """An edge costs as much as there are later ones: few, however many pods start together."""

    __slots__ = ("_edges", "_states", "discarded", "effective", "known", "needed", "online", "since")

    def __init__(
        self, slots: int, known: float, effective: float = 0.0, discarded: float = 0.0, online: int = 0
    ) -> None:
        self.known = known  # since when it is followed
        self.effective, self.discarded = effective, discarded  # up to `since`
        self.since = known
        self.online, self.needed = online, slots  # at `since`
        self._edges: list[Edge] = []
        self._states: list[State] = []  # after each of them

    def moved(self, at: float, online: int = 0, slots: int = 0, now: float | None = None) -> None:
        """Pods came or went, or more or fewer are needed."""
        if not self._edges and not self.online and not (self.effective or self.discarded):
            self.since = min(at, self.since)
        edge = Edge(max(at, self.since), online, slots)
        place = bisect_right(self._edges, edge.at, key=_at)
        self._edges.insert(place, edge)
        self._settle(place)
        self._fold(at if now is None else now)

    def sums(self, now: float) -> tuple[float, float]:
        """Effective and discarded."""
        effective, discarded, until, online, needed = self.state
        gained = online * max(now - until, 0.0)
        if online >= needed:
            return effective + gained, discarded
        return effective, discarded + gained

    @property
    def slots(self) -> int:
        return self.state[4]

    @property
    def state(self) -> State:
        """After all that has happened."""
        return self._state(len(self._edges))

    def _state(self, edges: int) -> State:
        """After so many of the edges."""
        if edges:
            return self._states[edges - 1]
        return self.effective, self.discarded, self.since, self.online, self.needed

    def _fold(self, now: float) -> None:
        if now - self.known < LATE:
            return
        old = bisect_right(self._edges, now - LATE, key=_at)
        self.effective, self.discarded, self.since, self.online, self.needed = self._state(old)
        del self._edges[:old], self._states[:old]

    def _settle(self, first: int) -> None:
        """Edges from the `first` on are new, or have one before them that is."""
        state = self._state(first)
        del self._states[first:]
        for edge in self._edges[first:]:
            state = self._after(state, edge)
            self._states.append(state)

    @staticmethod
    def _after(state: State, edge: Edge) -> State:
        effective, discarded, since, online, needed = state
        gained = online * (edge.at - since)
        if online >= needed:
            effective += gained
        else:
            discarded += gained
        return effective, discarded, edge.at, online + edge.online, needed + edge.slots


def _at(edge: Edge) -> float:
    return edge.at
