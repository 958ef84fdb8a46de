"""How many CPUs the others leave for best-effort work.

    room = ceiling · CPUs − level − reserve,   level = a quantile of the others' use over a window

A use above the level by more than noise counts at once, alone: room shrinks at once. A use below it by more than noise
counts alone once it has lasted for `calm`. Noise is what use differs by from one reading to the next, at least the dead
band. So steps are answered by one change each, a slow drift by one for each dead band, and noise by none. Room grows by
so much a second and never falls below its floor.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from j10ce.control.law import clamp, dead_band, quantile, ramp, smooth
from j10ce.model.kinds import Strict
from j10ce.model.quantity import Duration

Share = Annotated[float, Meta(ge=0, le=1)]
SAMPLE_S: Final = 0.5  # arrivals run the ring between ticks; what comes closer than this is one sample
NOISES: Final = 3.0  # times the mean difference of neighbouring readings: no stationary use leaves its level by more
NOISE_S: Final = 60.0  # how long a difference is remembered


class Law(Strict, frozen=True, kw_only=True):
    """Shares are of the whole machine. The high quantile, not the mean: a burst of the protected must not find its CPUs
    lent out."""

    ceiling: Share = 0.8  # for all tiers together
    floor: Share = 0.05  # for best-effort, whatever happens
    reserve_cpus: Annotated[float, Meta(ge=0)] = 0.0  # left free besides
    quantile: Share = 0.95
    window: Duration = Duration(60)
    calm: Duration = Duration(60)
    grow: Annotated[float, Meta(gt=0)] = 0.02  # per second
    dead_band: Share = 0.02
    prompt: bool = False  # room shrinks however little it is; the dead band is for growing alone


class Use(NamedTuple):
    at: float
    cpus: float


class Room(NamedTuple):
    """What best-effort may use, and all that the next decision needs to know of this one."""

    at: float
    cpus: float
    reason: str
    level: float = 0.0  # of the others' use
    noise: float = 0.0  # mean difference of neighbouring readings
    uses: tuple[Use, ...] = ()  # since the last step, within the window, oldest first; empty: nothing was ever read


def next_room(law: Law, held: Room | None, now: float, others: float | None, cpus: float, asked: float = 0.0) -> Room:
    """One decision. `others` None: nothing was read, so the last decision stays; the first goes by what they ask for,
    in CPUs."""
    if others is None:
        return held._replace(at=now, reason=_unread(held)) if held else _by_requests(law, now, asked, cpus)
    known = held if held and held.uses else None
    if known is None:
        room = _left(law, others, cpus)
        return Room(now, room, _reason(others, cpus, room), others, 0.0, (Use(now, others),))
    noise = smooth(known.noise, abs(others - known.uses[-1].cpus), now - known.at, NOISE_S)
    uses = _since_step(law, known, Use(now, others), max(NOISES * known.noise, law.dead_band * cpus))
    level = quantile([u.cpus for u in uses], law.quantile)
    left = _left(law, level, cpus)
    room = left if law.prompt and left < known.cpus else dead_band(known.cpus, left, law.dead_band * cpus)
    room = ramp(known.cpus, room, rise=law.grow * cpus * max(0.0, now - known.at))
    return Room(now, room, _reason(level, cpus, room), level, noise, uses)


def _left(law: Law, level: float, cpus: float) -> float:
    return clamp(law.ceiling * cpus - level - law.reserve_cpus, law.floor * cpus, cpus)


def _by_requests(law: Law, now: float, asked: float, cpus: float) -> Room:
    room = _left(law, asked, cpus)
    return Room(now, room, f"nothing was read yet; others ask for {asked:.2f} of {cpus:g} CPUs; {room:.2f} left")


def _unread(held: Room) -> str:
    return f"no reading of the node's CPU use; stays at {held.cpus:.2f} CPUs"


def _reason(level: float, cpus: float, room: float) -> str:
    return f"others use {level:.2f} of {cpus:g} CPUs; {room:.2f} left for best-effort"


def _since_step(law: Law, known: Room, latest: Use, margin: float) -> tuple[Use, ...]:
    """The readings that count: of the window, without those before a step."""
    if latest.cpus > known.level + margin:
        return (latest,)
    uses = _window(known.uses, latest, law.window.seconds)
    lasting = tuple(u for u in uses if u.at > latest.at - law.calm.seconds)
    whole = uses[0].at <= latest.at - law.calm.seconds
    return lasting if whole and all(u.cpus < known.level - margin for u in lasting) else uses


def _window(uses: tuple[Use, ...], latest: Use, span_s: float) -> tuple[Use, ...]:
    kept = tuple(u for u in uses if u.at >= latest.at - span_s)
    if kept and latest.at - kept[-1].at < SAMPLE_S:
        return (*kept[:-1], Use(kept[-1].at, max(kept[-1].cpus, latest.cpus)))
    return (*kept, latest)
