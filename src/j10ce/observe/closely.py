"""Which workloads are looked at closely: those that may suffer from others, and those that may be why.

What tells of suffering costs too much to read of everybody on every tick. So a few are chosen anew every ten seconds by
what is known of everybody: of the protected those that wait most or use most, and whoever else waits for I/O.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Final

from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, TargetId
from j10ce.model.snapshot import Snapshot

CHOOSE_S: Final = 10.0
KNOWN_S: Final = 30.0  # pressure of everybody is read on every tenth sample
MOST_VICTIMS: Final = 24
MOST_SUSPECTS: Final = 8
MOST_ON_DISKS: Final = 32
LEAST_CPUS: Final = 0.01  # whoever uses less, and waits for nothing, suffers from nobody
LEAST_PRESSURE: Final = 0.02
LEAST_OF_NODE: Final = 0.002  # what nobody on the machine waits for, no single workload does
BUSY_WITH_IO: Final = 0.05
PRESSURES: Final = ("cpu.pressure", "memory.pressure", "io.pressure")


class Closely:
    """Fed with snapshots, asked by sensors; all of it runs on the ring's thread."""

    def __init__(self) -> None:
        self.targets: frozenset[TargetId] = frozenset()
        self.disks: frozenset[TargetId] = frozenset()  # whose disks are read on every sample
        self.asked: Collection[TargetId] = ()  # whose memory controllers want to have measured on the next sample
        self._epoch = -1
        self._chosen_at = -math.inf

    def follow(self, snap: Snapshot) -> None:
        if snap.epoch == self._epoch and snap.now - self._chosen_at < CHOOSE_S:
            return
        self._epoch, self._chosen_at = snap.epoch, snap.now
        self.disks = frozenset(_of_disks(snap))
        protected = [t for t, e in snap.entitlements.items() if e.chosen and e.tier is not Tier.BESTEFFORT]
        suspects = snap.entitlements.keys() - protected
        felt = [p for p in PRESSURES if _felt(snap.readings.window(NODE, p, KNOWN_S).peak())]
        victims = _most(protected, MOST_VICTIMS, lambda t: _need(snap, t, felt))
        self.targets = frozenset((*victims, *_most(suspects, MOST_SUSPECTS, lambda t: _io(snap, t))))


def _of_disks(snap: Snapshot) -> list[TargetId]:
    """Those who were promised something of a disk, and while there are any, whoever uses disks most."""
    holders = [t for t, e in snap.entitlements.items() if e.chosen and (e.floor.disk_read or e.floor.disk_write)]
    others = snap.entitlements.keys() - holders if holders else ()
    return [*holders, *_most(others, MOST_ON_DISKS, lambda t: _transfers(snap, t))]


def _transfers(snap: Snapshot, target: TargetId) -> float:
    return sum(snap.readings.window(target, m, KNOWN_S).peak() or 0.0 for m in ("disk.read", "disk.write"))


def _most(targets: Iterable[TargetId], count: int, weight: Callable[[TargetId], float]) -> list[TargetId]:
    """Those of positive weight, the heaviest first."""
    weighed = [(-w, target) for target in targets if (w := weight(target)) > 0]
    return [target for _, target in sorted(weighed)[:count]]


def _felt(peak_of_node: float | None) -> bool:
    """Where nobody knows, it may be."""
    return peak_of_node is None or peak_of_node >= LEAST_OF_NODE


def _need(snap: Snapshot, target: TargetId, felt: Iterable[str]) -> float:
    """Waiting comes before any use; without either there is no need. `felt` is the pressure that the machine has."""
    waits = max((snap.readings.window(target, p, KNOWN_S).peak() or 0.0 for p in felt), default=0.0)
    uses = snap.readings.window(target, "cpu.usage", CHOOSE_S).mean() or 0.0
    if waits >= LEAST_PRESSURE:
        return 1.0 + waits
    return uses / (1.0 + uses) if uses >= LEAST_CPUS else 0.0


def _io(snap: Snapshot, target: TargetId) -> float:
    waits = snap.readings.window(target, "io.pressure", KNOWN_S).peak() or 0.0
    return waits if waits >= BUSY_WITH_IO else 0.0
