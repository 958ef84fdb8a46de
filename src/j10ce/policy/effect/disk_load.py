"""What floors of disks are worth: whether anything limits others there, and whether all floors fit on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from j10ce.model.machine.disk import Disk
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.support import missing
from j10ce.policy.equipment import UNMEASURED

CAPS: Final[Mapping[str, str]] = {"diskRead": "io.max.rbps", "diskWrite": "io.max.wbps"}
MOST: Final = 0.9  # of a disk's time is kept for floors: others have a tenth at least
ROUNDING: Final = 1.001


class DiskLoad:
    """Of one snapshot: what is promised of each disk is added up once."""

    def __init__(self, snap: Snapshot) -> None:
        self._snap = snap
        self._taken: dict[str, float] = {}

    def judge(self, resource: str, promised: float) -> tuple[float, str]:
        """What is left of a floor, and why that is less."""
        managed = [d for d in self._snap.node.disks.values() if d.managed]
        measured = [d for d in managed if d.calibrated]
        if not measured:
            return 0.0, str(UNMEASURED[resource])
        if not self._snap.supports(CAPS[resource]):
            return 0.0, missing(self._snap, CAPS[resource])
        if resource == "diskWrite" and (free := [d for d in managed if d.holds and {*d.holds} <= {*d.uncharged}]):
            names = ", ".join(sorted(d.name for d in free))
            return (
                0.0,
                f"what others write through the page cache of {names} is charged to nobody, so nothing limits it",
            )
        fullest = max(measured, key=self._share)
        taken = self._share(fullest)
        if taken <= MOST * ROUNDING:
            return promised, ""
        return promised * MOST / taken, f"floors take {taken:.0%} of {fullest.name}, of which others keep a tenth"

    def _share(self, disk: Disk) -> float:
        if disk.number not in self._taken:
            floors = [e.floor for e in self._snap.entitlements.values() if e.chosen]
            self._taken[disk.number] = sum(
                f.disk_read / disk.read_bps + f.disk_write / disk.write_bps
                for f in floors
                if f.disk_read or f.disk_write
            )
        return self._taken[disk.number]
