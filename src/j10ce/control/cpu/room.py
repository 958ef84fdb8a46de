"""How many CPUs the others leave for best-effort work.

    room = ceiling · CPUs − max(high quantile over the window, mean of the last seconds) of the others' use − reserve

The high quantile, not the mean: a burst of the protected must not find its CPUs lent out. Room shrinks at once, grows
slowly, ignores changes below the dead band, and never falls below its floor.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from j10ce.control.law import clamp, dead_band, quantile, ramp, smooth
from j10ce.model.kinds import Strict
from j10ce.model.quantity import Duration

Share = Annotated[float, Meta(ge=0, le=1)]
SAMPLE_S: Final = 0.5  # arrivals run the ring between ticks; what comes closer than this is one sample


class Law(Strict, frozen=True, kw_only=True):
    """Shares are of the whole machine."""

    ceiling: Share = 0.8  # for all tiers together
    floor: Annotated[float, Meta(gt=0, le=1)] = 0.05  # for best-effort, whatever happens
    reserve_cpus: Annotated[float, Meta(ge=0)] = 0.0  # left free besides
    quantile: Share = 0.95
    window: Duration = Duration(60)
    settle: Duration = Duration(3)
    grow: Annotated[float, Meta(gt=0)] = 0.02  # per second
    dead_band: Share = 0.02


class Use(NamedTuple):
    at: float
    cpus: float


class Room(NamedTuple):
    """What best-effort may use, and all that the next decision needs to know of this one."""

    at: float
    cpus: float
    reason: str
    recent: float = 0.0  # the others' use, smoothed over the last seconds
    uses: tuple[Use, ...] = ()  # within the window, oldest first; empty: nothing was ever read


def next_room(law: Law, held: Room | None, now: float, others: float | None, cpus: float) -> Room:
    """One decision. `others` None: nothing was read, so the last decision stays."""
    if others is None:
        stays = held.cpus if held else law.floor * cpus
        reason = f"no reading of the node's CPU use; stays at {stays:.2f} CPUs"
        return Room(now, stays, reason, held.recent, held.uses) if held else Room(now, stays, reason)
    known = held if held and held.uses else None
    uses = _window(known.uses if known else (), Use(now, others), law.window.seconds)
    high = quantile([u.cpus for u in uses], law.quantile)
    recent = smooth(known.recent, others, now - known.at, law.settle.seconds) if known else others
    room = clamp(law.ceiling * cpus - max(high, recent) - law.reserve_cpus, law.floor * cpus, cpus)
    if known:
        room = dead_band(known.cpus, room, law.dead_band * cpus)
        room = ramp(known.cpus, room, rise=law.grow * cpus * max(0.0, now - known.at))
    reason = f"others use {max(high, recent):.2f} of {cpus:g} CPUs; {room:.2f} left for best-effort"
    return Room(now, room, reason, recent, uses)


def _window(uses: tuple[Use, ...], latest: Use, span_s: float) -> tuple[Use, ...]:
    kept = tuple(u for u in uses if u.at >= latest.at - span_s)
    if kept and latest.at - kept[-1].at < SAMPLE_S:
        return (*kept[:-1], Use(kept[-1].at, max(kept[-1].cpus, latest.cpus)))
    return (*kept, latest)
