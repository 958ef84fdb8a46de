"""Disks as they are used and divided now: what each does, and of one workload what it has there and who gives way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from j10ce.control.disk.places import capped, leaves
from j10ce.model.knob import Setting, TargetId, disk
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot

RECENT_S: Final = 5.0
KNOWN_S: Final = 15.0  # those whom nobody looks at closely are read every ten seconds
NAMED: Final = 5  # how many others a sentence names
RATES: Final = {"read": "disk.read", "write": "disk.write", "reads": "disk.riops", "writes": "disk.wiops"}
PREFIX: Final = "io."


class UsedDisk(Struct, frozen=True):
    """A managed one. Bytes and operations a second."""

    disk: Disk
    rates: Mapping[str, float]  # by the names of RATES, those that are measured
    busy: float | None  # share of time in which it had something to do
    vrate: float | None  # percent of its model that io.cost goes at; None: io.cost does not divide it


def used(snap: Snapshot) -> list[UsedDisk]:
    """By name."""
    managed = sorted((d for d in snap.node.disks.values() if d.managed), key=lambda d: (d.name, d.number))
    return [_used(snap, d) for d in managed]


def rows(snap: Snapshot) -> list[dict[str, Any]]:
    """As `top` shows them."""
    return [
        {
            "name": one.disk.name or one.disk.number,
            "read": one.rates.get("read", 0.0),
            "write": one.rates.get("write", 0.0),
            "busy": one.busy,
            "readCapacity": one.disk.read_bps or None,
            "writeCapacity": one.disk.write_bps or None,
        }
        for one in used(snap)
    ]


def notes_of(snap: Snapshot, target: TargetId, name: str) -> Iterator[str]:
    """Beside a knob of disks: what the workload does on each disk, and who gives way to it there."""
    e = snap.entitlements.get(target)
    if not name.startswith(PREFIX) or e is None or not e.chosen:
        return
    said = name.partition("[")[2].partition("]")[0]
    for d in capped(snap.node.disks):
        if not said or said == d.number:
            yield _seen_of(snap, target, d)


def _seen_of(snap: Snapshot, target: TargetId, d: Disk) -> str:
    rates = {way: snap.readings.window(target, f"{RATES[way]}[{d.number}]", KNOWN_S).last() for way in RATES}
    known = {way: rate for way, rate in rates.items() if rate is not None}
    does = "nothing was seen of it"
    if known.keys() == RATES.keys():
        does = f"reads {_bytes(known['read'])}/s in {known['reads']:.0f}, "
        does += f"writes {_bytes(known['write'])}/s in {known['writes']:.0f}"
    floor = snap.entitlements[target].floor
    promised = [f"{_bytes(n)}/s {way}" for n, way in ((floor.disk_read, "read"), (floor.disk_write, "written")) if n]
    kept = f"; at least {' and '.join(promised)}, {_way(snap, d)}" if promised else ""
    return f"{d.name or d.number}: {does}{kept}{_yielding(snap, target, d) if promised else ''}"


def _way(snap: Snapshot, d: Disk) -> str:
    """By what its floors are kept there now."""
    below = list(leaves(d, snap.node.disks))
    if all(snap.settings.get(Setting(disk(b.number), "io.cost.qos")) for b in below):
        return "by weight"
    return (
        "by caps on others" if d.calibrated or all(b.calibrated for b in below) else "which nothing keeps: not measured"
    )


def _yielding(snap: Snapshot, target: TargetId, d: Disk) -> str:
    """Those whose cap is lower than what they may by themselves."""
    capped_here = {
        other: cap
        for other, e in snap.entitlements.items()
        if other != target and not (e.floor.disk_read or e.floor.disk_write)
        if (cap := _cap(snap, other, d)) < min(e.ceiling.disk_read, e.ceiling.disk_write)
    }
    if not capped_here:
        return "; nobody has to give way"
    named = [f"{t.removeprefix('workload/')} ({_bytes(capped_here[t])})" for t in sorted(capped_here)[:NAMED]]
    more = f" and {len(capped_here) - NAMED} more" if len(capped_here) > NAMED else ""
    return f"; gives way: {', '.join(named)}{more}"


def _cap(snap: Snapshot, target: TargetId, d: Disk) -> float:
    held = (snap.settings.get(Setting(target, f"io.max.{what}", d.number), math.inf) for what in ("rbps", "wbps"))
    return min(float(v) if isinstance(v, float | int) else math.inf for v in held)


def _used(snap: Snapshot, d: Disk) -> UsedDisk:
    def recent(metric: str) -> float | None:
        return snap.readings.window(disk(d.number), metric, RECENT_S).mean()

    measured = {way: recent(metric) for way, metric in RATES.items()}
    rates = {way: rate for way, rate in measured.items() if rate is not None}
    return UsedDisk(d, rates, recent("disk.busy"), recent("io.vrate"))


def _bytes(rate: float) -> str:
    return spell("diskRead", round(rate))
