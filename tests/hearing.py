"""Silence as a test tells it: nodes are as old as their heartbeat says, by the clock of the test."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

from msgspec import UNSET

from j10ce.manager.documents.silence import Hear, Word
from j10ce.manager.policies.roster import Changes, ReportedRoster
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS

LOST_S = 40.0


def by_heartbeat(wall: Callable[[], float]) -> Hear:
    def word(node: NodeQoS) -> Word:
        heartbeat = node.status.node.heartbeat
        silent_s = math.inf if heartbeat is UNSET else wall() - heartbeat.timestamp()
        return Word(silent_s, silent_s > LOST_S, silent_s > LOST_S)

    return word


class Roster(ReportedRoster):
    """Hears by the time of its own looks."""

    def __init__(self) -> None:
        super().__init__(by_heartbeat(lambda: self.wall))
        self.wall = 0.0

    def look(self, nodes: Iterable[NodeQoS], policies: Collection[MinimalReservationPolicy], wall: float) -> Changes:
        self.wall = wall
        return super().look(nodes, policies, wall)
