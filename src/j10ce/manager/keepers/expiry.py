"""Temporary objects that are over: holds say so in their status, and what nobody needs any more is removed later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Final, TypeAlias

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.daemon.pace import unhurried
from j10ce.errors import Conflict, NotFound, QosError
from j10ce.manager.documents.view import View
from j10ce.model.kinds import PLACEMENT_LABEL, Condition, Hold, HoldStatus, MinimalReservationPolicy, NodeQoS
from j10ce.model.stored import key_of
from j10ce.policy.lifetime import ends, over
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0
KEPT_S: Final = 3600.0  # how long after its end it can still be looked at
Temporary: TypeAlias = Hold | MinimalReservationPolicy


async def expire(store: Store, view: View, wall: Callable[[], float]) -> None:
    """For ever. Agents end a hold by themselves, to the second; this is the bookkeeping after it."""
    await view.ready()
    watched = Overdue(lambda: view.silence.now)
    while True:
        await look(store, view, watched, wall())
        await asyncio.sleep(LOOK_S)


class Overdue:
    """For how long objects have been over while this process looked, by its own clock: a wall clock that was set wrong
    makes nothing vanish."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}  # by uid

    def over_s(self, obj: Temporary, wall: float) -> float:
        if not over(obj, wall):
            self._since.pop(obj.metadata.uid, None)
            return 0.0
        return self._clock() - self._since.setdefault(obj.metadata.uid, self._clock())

    def forget_all_but(self, there: Iterable[Temporary]) -> None:
        uids = {obj.metadata.uid for obj in there}
        self._since = {uid: since for uid, since in self._since.items() if uid in uids}


async def look(store: Store, view: View, watched: Overdue, wall: float) -> None:
    """One object that cannot be tidied, whatever the reason, does not keep the others. Raises what the store said."""
    placements = (p for p in view.all(MinimalReservationPolicy) if PLACEMENT_LABEL in p.metadata.labels)
    temporary: list[Temporary] = [*view.all(Hold), *placements]
    watched.forget_all_but(temporary)
    failure: QosError | None = None
    async for obj in unhurried(temporary):
        try:
            over_s = watched.over_s(obj, wall)
            await tidy(store, obj, wall, gone=over_s >= KEPT_S and not (isinstance(obj, Hold) and _obeyed(obj, view)))
        except QosError as e:  # of a store that is away, or that refuses this one
            failure = e
        except Exception:
            log.exception("object.expire_fail", object=str(key_of(obj)))
    if failure:
        raise failure


def _obeyed(hold: Hold, view: View) -> bool:
    """By the clock of a node that it is for, which is the one that counts, it is not over."""
    named = hold.spec.node
    nodes = (n for n in view.all(NodeQoS) if named in ("", n.metadata.name) and not view.silence.of(n).doubtful)
    heard = (n.status.node.heartbeat for n in nodes)
    times = (time.timestamp() for time in heard if time is not UNSET and time.tzinfo is not None)
    return any(not over(hold, time) for time in times)


async def tidy(store: Store, obj: Temporary, wall: float, *, gone: bool) -> None:
    """Only the object that was looked at: one that was prolonged or made again meanwhile stays."""
    expect = obj.metadata.resource_version
    try:
        if gone:
            await store.delete(*key_of(obj), expect=expect)
            log.info("object.expire", object=str(key_of(obj)), over_s=int(wall - ends(obj)))
        elif isinstance(obj, Hold) and (status := hold_status(obj, wall)) != obj.status:
            await store.put(replace(obj, status=status), expect=expect, part="status")
    except (Conflict, NotFound):
        return  # it moved on; the next look sees it as it is


def hold_status(hold: Hold, wall: float) -> HoldStatus:
    others = tuple(c for c in hold.status.conditions if c.type != "Expired")
    if not over(hold, wall):
        return hold.status if others == hold.status.conditions else replace(hold.status, conditions=others)
    end, generation = hold.spec.expires.astimezone(UTC).replace(microsecond=0), hold.metadata.generation
    expired = Condition(
        type="Expired",
        status="True",
        reason="TimeIsOver",
        message=f"ended at {end:%Y-%m-%dT%H:%M:%SZ}; removed {KEPT_S / 60:g} minutes later",
        last_transition_time=end,
        observed_generation=generation,
    )
    return HoldStatus(observed_generation=generation, conditions=(*others, expired))
