"""What profiles, overlays and limits say of disks: caps, weight and latency."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.disk.places import capped, queued
from j10ce.model.kinds import IoSection
from j10ce.model.knob import Setting
from j10ce.model.plan import Bound
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

UNSAID: Final = IoSection()


class DiskWish(NamedTuple):
    setting: Setting
    bound: Bound
    value: float
    reason: str


def wishes(snap: Snapshot, e: Entitlement) -> Iterator[DiskWish]:
    """Of one chosen workload; of most nothing is said."""
    io, disks = e.io, snap.node.disks
    if io == UNSAID and e.ceiling.disk_read == e.ceiling.disk_write == math.inf:
        return
    limits = {"rbps": e.ceiling.disk_read, "wbps": e.ceiling.disk_write}
    whose = f"profile {e.profile}" if e.profile else "its limits"
    for d in capped(disks):
        for what, limit in limits.items():
            if limit < math.inf:
                setting = Setting(e.target, f"io.max.{what}", d.number)
                why = f"limit {spell('diskRead', limit)}/s on {d.name or d.number}"
                yield DiskWish(setting, Bound.WANT, limit, why)
                yield DiskWish(setting, Bound.AT_MOST, limit, why)
        for what, operations in (("riops", io.read_iops_limit), ("wiops", io.write_iops_limit)):
            if operations is not UNSET:
                setting = Setting(e.target, f"io.max.{what}", d.number)
                yield DiskWish(setting, Bound.WANT, float(operations), f"{whose}: {operations} a second on {d.name}")
                yield DiskWish(setting, Bound.AT_MOST, float(operations), f"{whose}: {operations} a second on {d.name}")
    if io.weight is not UNSET:
        yield DiskWish(Setting(e.target, "io.weight"), Bound.WANT, float(io.weight), f"{whose}: weight {io.weight}")
    if io.latency is not UNSET:
        for d in queued(disks):
            setting, us = Setting(e.target, "io.latency", d.number), float(round(io.latency.seconds * 1e6))
            yield DiskWish(setting, Bound.WANT, us, f"{whose}: {io.latency} on {d.name}")
