"""PrioritySort: the higher priority first; among equals the first come."""

from __future__ import annotations

from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.framework import Key, QueueSort


class PrioritySort:
    name = "PrioritySort"
    moves = False

    def queue_key(self, pod: PodFacts, now: float, /) -> Key:
        return -pod.priority


_: type[QueueSort] = PrioritySort
