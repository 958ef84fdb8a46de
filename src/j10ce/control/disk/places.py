"""Where caps, weights and models work: caps where file systems are, weights where requests queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from j10ce.model.machine.disk import Disk


def capped(disks: Mapping[str, Disk]) -> list[Disk]:
    """Managed ones that nothing managed is made of: every I/O passes them once."""
    managed = {n: d for n, d in disks.items() if d.managed}
    below = {b for d in managed.values() for b in d.below}
    return [managed[n] for n in sorted(managed.keys() - below)]


def queued(disks: Mapping[str, Disk]) -> list[Disk]:
    """Managed ones with a queue of requests, at the bottom of what is made of others."""
    return [d for _, d in sorted(disks.items()) if d.managed and d.queued and not d.below]


def modelled(disks: Mapping[str, Disk]) -> list[Disk]:
    return [d for d in queued(disks) if d.model and d.calibrated]


def leaves(disk: Disk, disks: Mapping[str, Disk], depth: int = 8) -> Iterable[Disk]:
    """What it is made of in the end; itself where it is made of nothing."""
    known = [disks[b] for b in disk.below if b in disks] if depth else []
    if not known:
        return [disk]
    return [leaf for b in known for leaf in leaves(b, disks, depth - 1)]
