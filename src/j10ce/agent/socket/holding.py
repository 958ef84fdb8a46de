"""Holds that are made and ended on the socket: whose each one is, and how many there may be.

A hold is its maker's. Root and the agent's own user may end any; another user ends his own, and makes none on a setting
that someone else holds, since of two holds the later expiry counts. He freezes what a workload has, and gives a value
only to limits of one that he placed: any other would be taken from somebody.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any, Final

import structlog
from msgspec import UnsetType
from msgspec.structs import replace

from j10ce.agent.cache import Cache, LocalHolds
from j10ce.agent.ring import holds as holding
from j10ce.agent.ring.holds import HoldRequest
from j10ce.agent.ring.ring import Report
from j10ce.agent.ring.runner import Shell
from j10ce.agent.socket import admission
from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.shortfall import absent_cpus, absent_devices, shortfalls, unarmed
from j10ce.errors import Busy, Denied, Invalid
from j10ce.model import schema
from j10ce.model.kinds import Hold
from j10ce.model.knob import KNOBS, KnobRole, read_names, workload
from j10ce.plan.hold import hold_problem
from j10ce.policy.effect.support import missing
from j10ce.policy.validation import validate

log = structlog.get_logger()
MOST_OF_ONE: Final = 64  # in force, made by one user but root
MOST_OF_ALL: Final = 256  # made by all users but root
MOST_RELEASED: Final = 1000  # remembered, beyond those that the control plane lists


class Holding:
    def __init__(self, shell: Shell, cache: Cache) -> None:
        self._shell = shell
        self._cache = cache
        known = cache.holds()
        self._makers = dict(known.makers)
        self._released = list(known.released)  # oldest first

    def live(self) -> tuple[Hold, ...]:
        return holding.live(self._shell.agent.all_holds(), self._shell.clock.read().wall)

    async def hold(self, request: HoldRequest, caller: Caller, report: Report, unwritable: str = "") -> dict[str, Any]:
        request = replace(request, who=admission.who(caller, request.who))
        hold = holding.from_request(request, self._shell.clock.read().wall)
        self._check_number(caller)
        for other in self._of_others(caller):
            theirs = other.spec.knobs if other.spec.target == request.target else ()
            if shared := [k for k in request.knobs if any(_overlap(k, held) for held in theirs)]:
                raise Denied(f"{request.target} {shared[0]} is held already, {_by(other)}; ask them, or root")
        self._check_right(request, caller)
        _check_effect(request, hold, report)
        self._makers[hold.metadata.name] = caller.uid
        self._released = [name for name in self._released if name != hold.metadata.name]
        unsaved = await self._keep((*self._shell.agent.holds, hold))
        log.info("hold.made", target=request.target, knobs=request.knobs, uid=caller.uid, why=request.why)
        answer = {"name": hold.metadata.name, "expires": hold.spec.expires.isoformat(), "hold": schema.plain(hold)}
        lost = [f"in force, but not on disk: it ends when the agent restarts ({unsaved})"] if unsaved else []
        return answer | {
            "notes": [*absent_devices(request.knobs, report.snap), *await self._notes(hold, unwritable), *lost]
        }

    async def _notes(self, hold: Hold, unwritable: str) -> list[str]:
        """Which of its values are not in force, and why."""
        if isinstance(hold.spec.value, UnsetType):
            return []
        report, agent = await self._shell.next_tick(), self._shell.agent
        if report is None:
            return [f"nobody knows yet whether it is in force: {self._shell.fault}"]
        settings = holding.held([hold], report.at.wall)
        return await self._shell.on_ring(shortfalls, settings, report, agent.kernel, unarmed(agent, unwritable))

    async def release(self, target: str, knobs: frozenset[str], caller: Caller) -> dict[str, Any]:
        """A hold ends here at once, and upstream once that answers; what stays of it is a hold of this host."""
        if unknown := [*validate.knobs("knobs", sorted(knobs))]:
            raise Invalid(unknown, "release")
        theirs = {h.metadata.name for h in self._of_others(caller)}
        local = {h.metadata.name for h in self._shell.agent.holds}
        kept: list[Hold] = []
        released: list[str] = []
        spared: list[Hold] = []
        for hold in self.live():
            name = hold.metadata.name
            rest, ended = holding.without([hold], target, knobs)
            if not ended or name in theirs:
                kept += [hold] if name in local else []
                spared += [hold] if ended else []
                continue
            self._released.append(name)
            self._makers |= {h.metadata.name: self._makers.get(name, 0) for h in rest}
            kept += rest
            released += ended
        if spared and not released:
            raise Denied(f"{target} is held, {_by(spared[0])}; root can release it, or who made it")
        self._shell.agent.reread()  # whatever was edited under the hold is found at the next tick
        await self._keep(kept)
        log.info("hold.ended", target=target, knobs=released, uid=caller.uid)
        return {"released": released}

    def _of_others(self, caller: Caller) -> list[Hold]:
        """Holds that this caller may not end; those of the control plane, and of an unknown maker, are root's."""
        if caller.trusted:
            return []
        return [h for h in self.live() if self._makers.get(h.metadata.name) != caller.uid]

    def _check_right(self, request: HoldRequest, caller: Caller) -> None:
        """What nobody gets by a profile or by asking for a minimum, he gets by no hold either."""
        if not caller.trusted and (what := self._of_root(request, caller.uid)):
            raise Denied(f"only root, or the user that the agent runs as, may {what}; this is uid {caller.uid}")

    def _of_root(self, request: HoldRequest, uid: int) -> str:
        """What of it is not for this user; empty where all is."""
        kind, _, rest = request.target.partition("/")
        if kind not in ("workload", "part"):
            return f"hold {request.target}, which is everybody's"
        if request.breaks_reservation:
            return "break a reservation"
        if isinstance(request.value, UnsetType):
            return ""
        placed = self._shell.agent.workloads.get(workload(*rest.split("/")[:2]))
        if placed is None or placed.uid != uid:
            return f"hold a value of {request.target}, which uid {uid} did not place"
        names = [knob for name in request.knobs for knob, _ in read_names(name)]
        given = [name for name in names if KNOBS[name].role is not KnobRole.CAP]
        return f"hold a value of {given[0]}, which is no limit" if given else ""

    def _check_number(self, caller: Caller) -> None:
        if caller.trusted:
            return
        there = {h.metadata.name for h in self.live()}
        makers = [uid for name, uid in self._makers.items() if name in there and uid not in (0, os.geteuid())]
        counts = (
            (makers.count(caller.uid), MOST_OF_ONE, admission.who(caller, "")),
            (len(makers), MOST_OF_ALL, "all users"),
        )
        for count, most, whose in counts:
            if count >= most:
                raise Busy(f"{count} holds of {whose} are in force, and no more may be; release some, or ask root")

    async def _keep(self, holds: Iterable[Hold]) -> str:
        """Why they are in force but not on disk; empty where they are."""
        live = holding.live(holds, self._shell.clock.read().wall)
        listed = {h.metadata.name for h in self._shell.agent.document.holds}
        unlisted = [name for name in self._released if name not in listed]
        forgotten = set(unlisted[: max(0, len(unlisted) - MOST_RELEASED)])
        self._released = [name for name in self._released if name not in forgotten]
        names = {h.metadata.name for h in live}
        self._makers = {name: uid for name, uid in self._makers.items() if name in names}
        await self._shell.on_ring(self._shell.agent.hold, live, tuple(self._released))
        self._shell.wake.set()
        kept = LocalHolds(items=live, released=tuple(self._released), makers=self._makers)
        return await self._cache.aside(self._cache.keep_holds, kept)


def _check_effect(request: HoldRequest, hold: Hold, report: Report) -> None:
    snap = report.snap
    named = dict.fromkeys(knob for name in request.knobs for knob, _ in holding.meant(name))
    if lacking := [missing(snap, knob) for knob in named if not snap.supports(knob)]:
        raise Denied(f"{request.target} is not held: {'; '.join(lacking)}")
    for setting in holding.held([hold], snap.wall):
        if absent := absent_cpus(setting, snap):
            raise Denied(f"{setting.setting} is not held: {absent}")
        problem = hold_problem(setting, snap)
        if problem and not request.breaks_reservation:
            raise Denied(f"{setting.setting} is not held: {problem}; --breaks-reservation holds it anyway")


def _overlap(one: str, other: str) -> bool:
    """Whether both mean a setting: `io.max[8:0]` means four, and a knob without its instance all that are there."""
    pairs = product(holding.meant(one), holding.meant(other))
    return any(k == known and (i == at or not i or not at) for (k, i), (known, at) in pairs)


def _by(hold: Hold) -> str:
    return f"by {hold.spec.who or 'the control plane'} until {hold.spec.expires.isoformat()} ({hold.spec.why})"
