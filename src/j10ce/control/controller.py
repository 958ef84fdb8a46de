"""The seam between the ring and its controllers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol, runtime_checkable

from j10ce.model.kinds import Strict
from j10ce.model.knob import Setting, TargetId
from j10ce.model.parts.reported import InterferenceReport
from j10ce.model.plan import Action, LadderView, Proposal
from j10ce.model.snapshot import Snapshot


class Controller(Protocol):
    """One idea about what the machine should look like.

    Registered in `control/builtin.py` or as entry point `j10ce.controllers`.
    """

    name: str

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        """All wishes that hold at this instant; a wish not repeated lapses.

        Called on every tick from the ring's thread. Must not block, keep references to `snap`, or depend on
        call frequency: time is `snap.now`. Raising keeps the last proposals in force for a grace time.
        """
        ...


class Unconfigured:
    """What controllers share that have no settings of their own: whatever somebody sets for one is refused."""

    class Config(Strict, frozen=True, kw_only=True):
        pass

    def __init__(self, config: Config) -> None:
        self.config = config  # whoever makes another one of its kind, for a what-if, passes it on


@runtime_checkable
class Actor(Protocol):
    """A controller that also asks for deeds: reclaim, evict, kill."""

    def act(self, snap: Snapshot, /) -> Iterable[Action]:
        """Those that are due at this instant, the most urgent first. Asked on every tick, after `propose`."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """A controller that needs some workloads measured on the next sample: pressure, refaults and page cache, which
    are otherwise read now and then."""

    @property
    def attends(self) -> Collection[TargetId]: ...


@runtime_checkable
class Staged(Protocol):
    """A controller that goes in stages, and says how far it has gone."""

    ladders: tuple[LadderView, ...]


@runtime_checkable
class Onlooker(Protocol):
    """A controller that also says who suffers from whom, as of its last `propose`."""

    seen: tuple[InterferenceReport, ...]


@runtime_checkable
class Steady(Protocol):
    """A controller whose proposals depend only on what `snap.epoch` covers: called again only when it moves."""

    steady: bool


@runtime_checkable
class Reader(Protocol):
    """A steady controller that depends on some settings in force, too: those that it looked at last time."""

    reads: Collection[Setting]
