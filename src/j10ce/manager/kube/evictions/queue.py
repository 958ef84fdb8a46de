"""Which request is due: so many a minute of one node, later and later where a budget does not allow it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

FIRST_S: Final = 5.0  # after a budget did not allow it; then twice as long each time
LONGEST_S: Final = 300.0
MINUTE_S: Final = 60.0


class Requested(NamedTuple):
    node: str
    namespace: str
    name: str
    uid: str
    why: str


class Tried(NamedTuple):
    again: float  # not before
    pause_s: float


class EvictionQueue:
    """Times are of one clock, which the caller reads. A request that is withdrawn is forgotten."""

    def __init__(self) -> None:
        self._tried: dict[str, Tried] = {}  # by uid, as long as it is asked for
        self._granted: dict[str, list[float]] = {}  # of each node, within the last minute

    def due(self, requests: Iterable[Requested], now: float, per_minute: Callable[[str], int]) -> list[Requested]:
        """At most so many of each node that all of them being granted breaks no limit."""
        listed = list(requests)
        self._tried = {r.uid: self._tried[r.uid] for r in listed if r.uid in self._tried}
        recent = ((node, [at for at in times if now - at < MINUTE_S]) for node, times in self._granted.items())
        self._granted = {node: times for node, times in recent if times}
        ready: list[Requested] = []
        room: dict[str, int] = {}
        for request in listed:
            left = room.setdefault(request.node, per_minute(request.node) - len(self._granted.get(request.node, ())))
            tried = self._tried.get(request.uid)
            if left > 0 and (tried is None or tried.again <= now):
                room[request.node] = left - 1
                ready.append(request)
        return ready

    def granted(self, request: Requested, now: float) -> None:
        self._granted.setdefault(request.node, []).append(now)
        self._tried[request.uid] = Tried(now + LONGEST_S, LONGEST_S)  # until it is gone

    def refused(self, request: Requested, now: float) -> bool:
        """Whether it is the first time."""
        before = self._tried.get(request.uid)
        pause_s = min(LONGEST_S, before.pause_s * 2) if before else FIRST_S
        self._tried[request.uid] = Tried(now + pause_s, pause_s)
        return before is None
