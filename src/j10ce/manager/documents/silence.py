"""How long nodes have been silent: since their heartbeat was last seen to change, by this process's own clock.

A heartbeat is a name for a report, never a time to compare with: clocks of different machines differ. So a node that
reports is heard whatever its clock says, and one that died is missed whatever its clock said.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from math import inf
from typing import Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from j10ce.model.kinds import Condition, NodeQoS

SILENT_S: Final = 40.0  # agents report every ten seconds
LATE_S: Final = SILENT_S / 2  # the half of it that a leader writes down, for the next one
LATE: Final = "Late"  # reason of the condition Ready: true, and nothing was heard for a while
STEP_S: Final = 5.0  # a pause of our own is no silence of others: between two looks no more than this passes


class Heard(Struct):
    """The latest report of one node."""

    heartbeat: datetime | UnsetType
    at_s: float
    was: Condition | None = None  # Ready, as it was when we came; None once we have heard the node ourselves


class Word(NamedTuple):
    """What is known of a node's silence."""

    silent_s: float  # infinite: it never reported
    lost: bool  # silent for so long that what it holds is not there any more
    doubtful: bool  # lost, or was to whoever led before us, and nothing was heard since


Hear = Callable[[NodeQoS], Word]


class Silence:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looked = clock()
        self._anyone = 0.0  # when any node was last heard
        self._deaf = False
        self._heard: dict[str, Heard] = {}
        self.now = 0.0  # for how long we have listened

    def take(self, node: NodeQoS, *, gone: bool) -> None:
        name, heartbeat = node.metadata.name, node.status.node.heartbeat
        known = self._heard.get(name)
        if gone:
            self._heard.pop(name, None)
        elif known is None or known.heartbeat != heartbeat:
            ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
            self._heard[name] = Heard(heartbeat, self.now, ready if known is None else None)
            self._anyone = self.now

    @property
    def quiet_s(self) -> float:
        """Since anyone at all was heard: perhaps it is us."""
        return self.now - self._anyone

    def tick(self) -> None:
        """We are listening: to be called every second or so. Whoever could not make themselves heard begins anew."""
        now = self._clock()
        self.now += min(now - self._looked, STEP_S)
        self._looked = now
        if self._deaf:
            self._deaf = False
            for heard in self._heard.values():
                if self.now - heard.at_s <= SILENT_S:
                    heard.at_s = self.now

    def miss(self) -> None:
        """We hear nothing: the store, through which nodes report, is away."""
        self._looked, self._deaf = self._clock(), True

    def of(self, node: NodeQoS) -> Word:
        """A node that was silent already when we came is believed to be after half the time: two leaders, each of whom
        leads for that long, notice it together."""
        heard = self._heard.get(node.metadata.name)
        if node.status.node.heartbeat is UNSET:
            return Word(inf, True, True)
        if heard is None:
            return Word(0.0, False, False)
        silent_s, was = self.now - heard.at_s, heard.was
        unknown = was is not None and was.status != "True"
        patience_s = LATE_S if unknown or (was is not None and was.reason == LATE) else SILENT_S
        return Word(silent_s, silent_s > patience_s, silent_s > patience_s or unknown)
