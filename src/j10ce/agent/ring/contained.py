"""Around each controller: a failing one keeps its last proposals for a grace time, and never stops the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import structlog

from j10ce.control.controller import Actor, Attentive, Controller, Onlooker, Reader, Staged, Steady
from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.parts.reported import InterferenceReport
from j10ce.model.plan import Action, LadderView, Proposal
from j10ce.model.snapshot import Snapshot

log = structlog.get_logger()
GRACE_S: Final = 30.0


class Contained:
    def __init__(self, controller: Controller, grace_s: float = GRACE_S) -> None:
        self.controller = controller
        self.name = controller.name
        self.fault = ""  # why it has nothing fresh to say; empty when it has
        self.last: tuple[Proposal, ...] = ()
        self.steady = isinstance(controller, Steady) and controller.steady
        # What else it does is found out once: asking on every tick costs as much as what most of them do there.
        self._actor = controller if isinstance(controller, Actor) else None
        self._attentive = controller if isinstance(controller, Attentive) else None
        self._onlooker = controller if isinstance(controller, Onlooker) else None
        self._reader = controller if isinstance(controller, Reader) else None
        self._staged = controller if isinstance(controller, Staged) else None
        self._grace_s = grace_s
        self._said_at = -math.inf
        self._epoch: int | None = None  # of the last answer
        self._settings: Mapping[Setting, Value] = {}  # as they were then

    def propose(self, snap: Snapshot) -> tuple[Proposal, ...]:
        """What the controller says of `snap`; of an earlier one, where nothing it looks at has moved or it fails."""
        if self.steady and self._epoch == snap.epoch and not self._moved(snap):
            return self.last
        try:
            fresh = tuple(self.controller.propose(snap))
        except Exception as e:  # whatever a controller raises stays inside it
            return self._without(e, snap.now)
        if self.fault:
            log.info("controller.recovered", controller=self.name)
        if fresh != self.last:  # an equal answer stays the same object: the arbiter skips what is identical
            self.last = fresh
        self.fault, self._said_at, self._epoch, self._settings = "", snap.now, snap.epoch, snap.settings
        return self.last

    @property
    def ladders(self) -> tuple[LadderView, ...]:
        """How far it has gone, where it goes in stages; one that fails is nowhere."""
        return self._staged.ladders if self._staged and not self.fault else ()

    @property
    def seen(self) -> tuple[InterferenceReport, ...]:
        """Who suffers from whom, as far as the controller looks for it."""
        return self._onlooker.seen if self._onlooker else ()

    def act(self, snap: Snapshot) -> tuple[Action, ...]:
        """The deeds that the controller asks for; none of one that fails, and none is kept for later."""
        if self._actor is None:
            return ()
        try:
            return tuple(self._actor.act(snap))
        except Exception as e:  # whatever a controller raises stays inside it
            if not self.fault:
                log.warning("controller.failed", controller=self.name, error=f"{type(e).__name__}: {e}")
            self.fault = f"{type(e).__name__}: {e}"
            return ()

    @property
    def attends(self) -> Collection[TargetId]:
        """Whom the controller wants to have measured closely."""
        return self._attentive.attends if self._attentive else ()

    def _moved(self, snap: Snapshot) -> bool:
        """Whether a setting that the controller looks at is another than when it spoke."""
        before, after = self._settings, snap.settings
        if before is after or self._reader is None:
            return False
        if any(before.get(s) != after.get(s) for s in self._reader.reads):
            return True
        self._settings = snap.settings
        return False

    def _without(self, error: Exception, now: float) -> tuple[Proposal, ...]:
        self._epoch = None
        if not self.fault:
            log.warning("controller.failed", controller=self.name, error=f"{type(error).__name__}: {error}")
        self.fault = f"{type(error).__name__}: {error}"
        if now - self._said_at > self._grace_s and self.last:
            log.warning("controller.lapsed", controller=self.name, after_s=self._grace_s)
            self.last = ()
        return self.last
