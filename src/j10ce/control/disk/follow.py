"""Floors of a disk without io.cost: caps on the others that follow what is measured, and end with it.

need of a holder   its whole floor while it uses most of what is kept for it; else half as much again as it uses
room               what the needs leave of the disk, and at least a tenth: nobody is starved
cap of another     what it asks for as far as the room goes round, and an even part of what is left then

All in shares of the disk's time: bytes by what it can read and write, operations by how many it can do. Caps begin once
a holder works and the others leave less than the needs; they end when no holder has worked for a while.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.control.law import step_up
from j10ce.model.knob import TargetId
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import Resources

WORKS: Final = 0.002  # of the disk's time: whoever uses less does not work
AHEAD: Final = 1.5  # of what a holder uses
MOST_USED: Final = 0.7  # of what is kept for a holder: it may want more
LEAST_ROOM: Final = 0.1
FULL: Final = 0.95  # of the disk: use and needs beyond it are contention
LET_GO_S: Final = 5.0
STEPS: Final = 4  # of a cap per doubling: noise crosses few
ASKS: Final = 1.3  # of what another one uses


class DiskRate(NamedTuple):
    """What one workload does with a disk, per second."""

    read: float = 0.0
    write: float = 0.0
    reads: float = 0.0
    writes: float = 0.0


class DiskShare(NamedTuple):
    """Of the disk's time."""

    read: float
    write: float

    @property
    def both(self) -> float:
        return self.read + self.write


class DiskCap(NamedTuple):
    read_bps: float
    write_bps: float
    share: float


class Followed(NamedTuple):
    """What the law remembers of one disk, and what it says."""

    needs: Mapping[TargetId, float] = {}
    caps: Mapping[TargetId, DiskCap] = {}
    worked: float = -math.inf  # when a holder last did


def used(rate: DiskRate, disk: Disk) -> DiskShare:
    """An operation costs what its bytes do, and at least one of those that the disk can do."""
    return DiskShare(
        max(rate.read / max(1, disk.read_bps), rate.reads / disk.read_iops if disk.read_iops else 0.0),
        max(rate.write / max(1, disk.write_bps), rate.writes / disk.write_iops if disk.write_iops else 0.0),
    )


def promised(floor: Resources, rate: DiskRate, disk: Disk) -> float:
    """What a floor is of the disk's time: small operations make each byte of it dearer."""
    now = used(rate, disk)
    read = floor.disk_read * max(1 / max(1, disk.read_bps), now.read / rate.read if rate.read >= 1 else 0.0)
    write = floor.disk_write * max(1 / max(1, disk.write_bps), now.write / rate.write if rate.write >= 1 else 0.0)
    return min(1.0 - LEAST_ROOM, read + write)


def follow(
    before: Followed,
    disk: Disk,
    floors: Mapping[TargetId, Resources],
    rates: Mapping[TargetId, DiskRate],
    now: float,
) -> Followed:
    """One step. `rates`: of holders and of everybody else who uses the disk."""
    uses = {t: used(rate, disk) for t, rate in rates.items()}
    worked = {t for t in floors if t in uses and uses[t].both >= WORKS}
    since = now if worked else before.worked
    if now - since > LET_GO_S:
        return Followed(worked=since)
    needs = {t: _need(before.needs.get(t), floors[t], rates[t], disk) for t in worked}
    kept = needs or before.needs
    others = {t: u for t, u in uses.items() if t not in floors and (u.both >= WORKS or t in before.caps)}
    asked = sum(kept.values()) + sum(u.both for u in others.values())
    if not others or (asked <= FULL and not before.caps):
        return Followed(kept, {}, since)
    room = max(LEAST_ROOM, 1.0 - sum(kept.values()))
    shares = divide({t: ASKS * u.both for t, u in others.items()}, room)
    return Followed(kept, {t: _cap(shares[t], others[t], disk) for t in others}, since)


def divide(asks: Mapping[TargetId, float], room: float) -> dict[TargetId, float]:
    """Everybody what he asks for as far as even parts of the room go, and what is left then evenly on top.

    Nobody has less than half of an even part: who asks for nothing yet may begin.
    """
    least = room / (2 * max(1, len(asks)))
    shares: dict[TargetId, float] = {}
    left, waiting = room, sorted(asks, key=lambda t: (asks[t], t))
    for n, target in enumerate(waiting):
        shares[target] = min(max(asks[target], least), left / (len(waiting) - n))
        left -= shares[target]
    return {t: s + max(0.0, left) / len(shares) for t, s in shares.items()}


def _need(kept: float | None, floor: Resources, rate: DiskRate, disk: Disk) -> float:
    whole, use = promised(floor, rate, disk), used(rate, disk).both
    if kept is None or use >= MOST_USED * kept:
        return whole
    return min(whole, max(WORKS, AHEAD * use, kept / 2))


def _cap(share: float, use: DiskShare, disk: Disk) -> DiskCap:
    """Both directions cost time; each is limited to its part of what there is, and to a tenth of it at least."""
    reads = use.read / use.both if use.both else 0.5
    read, write = (max(LEAST_ROOM, part) * share for part in (reads, 1.0 - reads))
    return DiskCap(_step(read * disk.read_bps), _step(write * disk.write_bps), share)


def _step(rate: float) -> float:
    """Down to a step, so that small changes are none."""
    return math.floor(step_up(max(rate, 4096.0), STEPS) / 2 ** (1 / STEPS))
