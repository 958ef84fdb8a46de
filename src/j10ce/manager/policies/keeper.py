"""The Policy Manager: what the fleet decides and what the agents report becomes the status of each policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import structlog
from msgspec.structs import replace

from j10ce.daemon.pace import unhurried
from j10ce.errors import Conflict, NotFound
from j10ce.manager.documents.view import View
from j10ce.manager.policies.admission import Decision
from j10ce.manager.policies.history import record
from j10ce.manager.policies.reports import Reports, RolloutStanding
from j10ce.manager.policies.reservations import Reservations
from j10ce.manager.policies.roster import ReportedRoster, Roster
from j10ce.manager.policies.status import Basis, judged, judged_alone
from j10ce.manager.policies.transitions import Tell, happenings, ignore
from j10ce.manager.policies.watched import Watched
from j10ce.model.kinds import (
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    Policy,
    PolicyRevision,
    PolicyStatus,
)
from j10ce.policy.document.document import reference
from j10ce.policy.document.rollout import done
from j10ce.policy.lifetime import in_force, over
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0  # expiry and silence happen without an event
SETTLE_S: Final = 0.1  # reports that come together are judged together
REST: Final = 9  # after a round it rests so many times as long as the round took: judging gets a tenth of the time
TOGETHER: Final = 16  # writes under way at once: whoever asks for something waits for no more


class Ground(NamedTuple):
    """What a judgement rested on: while it stays the same there is nothing to judge again."""

    revision: str
    standing: RolloutStanding
    decision: Decision | None
    expired: bool
    round: int  # while a rollout is under way its clock runs


async def judge_policies(
    store: Store,
    view: View,
    wall: Callable[[], float],
    *,
    roster: Roster | None = None,
    tell: Tell = ignore,
    namespace_limit: int = NAMESPACE_LIMIT,
    longest_rest_s: float = LOOK_S,
) -> None:
    """Keep the status of every policy true, for ever. `tell` hears what has become of one, after it was written."""
    await view.ready()
    reservations = Reservations(roster or ReportedRoster(view.silence.of), limit_percent=namespace_limit)
    loop, judge = asyncio.get_running_loop(), Judge(store, view, reservations, tell)
    with view.heard(judge.reports.take):
        judge.reports.take_over(view.policies())
        while True:
            epoch, began = view.objects.epoch, loop.time()
            await judge.round(wall())
            await asyncio.sleep(max(SETTLE_S, min(longest_rest_s, REST * (loop.time() - began))))
            try:
                async with asyncio.timeout(LOOK_S):
                    await view.objects.moved(epoch)
            except TimeoutError:
                continue


class Judge:
    def __init__(self, store: Store, view: View, reservations: Reservations, tell: Tell = ignore) -> None:
        self._store, self._view, self._reservations, self._tell = store, view, reservations, tell
        self._grounds: dict[str, Ground] = {}  # by uid
        self._rounds = 0
        self._watched = Watched()
        self.reports = Reports(view.documents, view.silence.of)

    async def round(self, wall: float) -> None:
        """Judge every policy whose ground has moved, with one write for each whose status is another one."""
        promises, fleet = self._view.all(MinimalReservationPolicy), self._reservations
        held = [in_force(p, self._view.documents.revisions(p)) or p for p in promises]
        nodes, revisions = fleet.look(held, self._view.nodes(), wall), self._view.all(PolicyRevision)
        now = self._view.silence.now  # intervals go by our own clock: a wall clock may be set
        decisions = await asyncio.to_thread(fleet.weigh, promises, nodes, wall, now, revisions)
        self.reports.look()
        self._rounds += 1
        policies = self._view.policies()
        grounds = {p.metadata.uid: self._ground(p, decisions, wall) async for p in unhurried(policies)}
        moved = [p for p in policies if self._grounds.get(p.metadata.uid) != grounds[p.metadata.uid]]
        self._grounds = grounds
        self._watched.forget_all_but(grounds)
        room = asyncio.Semaphore(TOGETHER)
        async with asyncio.TaskGroup() as group:
            async for policy in unhurried(moved):
                if (status := self._status(policy, wall)) != policy.status:
                    await room.acquire()
                    group.create_task(self._write(policy, status)).add_done_callback(lambda _: room.release())

    def _ground(self, policy: Policy, decisions: Mapping[str, Decision], wall: float) -> Ground:
        ended = isinstance(policy, MinimalReservationPolicy) and over(policy, wall)
        standing, decision = self.reports.standing(policy), decisions.get(reference(policy))
        return Ground(policy.metadata.resource_version, standing, decision, ended, self._clock(policy.status))

    def _clock(self, status: PolicyStatus) -> int:
        return 0 if done(status.rollout) else self._rounds

    def _status(self, policy: Policy, wall: float) -> PolicyStatus:
        ground = self._grounds[policy.metadata.uid]
        watched_s = self._watched.take(policy, self._view.silence.now)
        basis = Basis(ground.standing, self.reports.of(policy), self._view.documents.known(policy), watched_s)
        if not isinstance(policy, MinimalReservationPolicy):
            return judged_alone(policy, basis, wall)
        if ground.decision is None:
            return policy.status
        return judged(policy, basis, ground.decision, wall)

    async def _write(self, policy: Policy, status: PolicyStatus) -> None:
        """What is admitted or stable is in the history before anyone relies on it."""
        try:
            if not self._view.documents.recorded(policy):
                await record(self._store, (policy,))
            expect = policy.metadata.resource_version
            written = await self._store.put(replace(policy, status=status), expect=expect, part="status")
        except (Conflict, NotFound):
            return  # it moved on, and its next event brings us back
        revision, ground = written.metadata.resource_version, self._grounds[policy.metadata.uid]
        self._grounds[policy.metadata.uid] = ground._replace(revision=revision, round=self._clock(status))
        self._watched.take(replace(policy, status=status), self._view.silence.now)
        _log(policy, status)
        for happening in happenings(policy, status):
            self._tell(policy, happening)


def _log(policy: Policy, status: PolicyStatus) -> None:
    """One line in the log for each turn that an operator may look for."""
    before, name = policy.status, reference(policy)
    phases = [s.phase for s in (before, status) if isinstance(s, MinimalReservationPolicyStatus)]
    if len(set(phases)) > 1:
        log.info("policy.judge", policy=name, phase=phases[1], was=phases[0])
    now, was = status.rollout, before.rollout
    if now.stopped and now.stopped != was.stopped:
        log.warning("rollout.stop", policy=name, revision=now.revision, why=now.stopped, back=len(now.back))
    elif done(now) and was.revision and not done(was):
        log.info("rollout.complete", policy=name, revision=now.revision)
