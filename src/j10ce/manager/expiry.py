"""Temporary objects that are over: holds say so in their status, and what nobody needs any more is removed later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC
from typing import Final

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.pace import unhurried
from j10ce.manager.view import View
from j10ce.model.kinds import PLACEMENT_LABEL, Condition, Hold, HoldStatus, MinimalReservationPolicy
from j10ce.store.revise import key_of
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0
KEPT_S: Final = 3600.0  # how long after its end it can still be looked at


async def expire(store: Store, view: View, wall: Callable[[], float]) -> None:
    """For ever. Agents end a hold by themselves, to the second; this is the bookkeeping after it."""
    await view.ready()
    while True:
        async for hold in unhurried(view.all(Hold)):
            await tidy(store, hold, wall())
        async for policy in unhurried(view.all(MinimalReservationPolicy)):
            if PLACEMENT_LABEL in policy.metadata.labels:
                await tidy(store, policy, wall())
        await asyncio.sleep(LOOK_S)


async def tidy(store: Store, obj: Hold | MinimalReservationPolicy, wall: float) -> None:
    """Only the object that was looked at: one that was prolonged or made again meanwhile stays."""
    over_s, expect = wall - ends(obj), obj.metadata.resource_version
    try:
        if over_s >= KEPT_S:
            await store.delete(*key_of(obj), expect=expect)
            log.info("object.expire", object=str(key_of(obj)), over_s=int(over_s))
        elif isinstance(obj, Hold) and (status := told(obj, wall)) != obj.status:
            await store.put(replace(obj, status=status), expect=expect, part="status")
    except (Conflict, NotFound):
        return  # it moved on; the next look sees it as it is


def ends(obj: Hold | MinimalReservationPolicy) -> float:
    """Wall clock; never, for a policy without a ttl."""
    if isinstance(obj, Hold):
        return obj.spec.expires.timestamp()
    ttl, created = obj.spec.ttl, obj.metadata.creation_timestamp
    return float("inf") if ttl is UNSET or created is UNSET else created.timestamp() + ttl.seconds


def told(hold: Hold, wall: float) -> HoldStatus:
    others = tuple(c for c in hold.status.conditions if c.type != "Expired")
    if wall < ends(hold):
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
