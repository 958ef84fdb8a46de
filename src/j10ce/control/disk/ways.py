"""How floors are kept on each disk, and what a better way needs: as `doctor disk` shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from j10ce.control.disk.places import leaves
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import spell

WEIGHTS: Final = ("io.cost.model", "io.cost.qos", "io.weight")
CAPS: Final = ("io.max.rbps", "io.max.wbps")


def listed(disks: Mapping[str, Disk], supported: Collection[str]) -> list[dict[str, Any]]:
    """By name. `supported`: the knobs that this machine has."""
    return [_way(d, disks, supported) for d in sorted(disks.values(), key=lambda d: d.name)]


def _way(disk: Disk, disks: Mapping[str, Disk], supported: Collection[str]) -> dict[str, Any]:
    lacks = list(_lacks(disk, disks, supported))
    if not disk.managed or not all(knob in supported for knob in CAPS):
        way = "none"
    elif not lacks:
        way = "weights"
    else:
        way = "caps on others" if _measured(disk, disks) else "none"
    return {
        "name": disk.name,
        "number": disk.number,
        "capacity": _capacity(disk),
        "managed": disk.managed,
        "floors": way,
        "needs": lacks if disk.managed else [],
        "uncharged": list(disk.uncharged),
    }


def _lacks(disk: Disk, disks: Mapping[str, Disk], supported: Collection[str]) -> Iterator[str]:
    """What stands between it and weights, which hold between two ticks and with a dead agent."""
    below = list(leaves(disk, disks))
    for lower in below:
        if not lower.calibrated:
            yield f"`j10ce-qos calibrate /dev/{lower.name}`"
        elif not lower.model:
            yield f"a model of {lower.name}, which `j10ce-qos calibrate` makes where a file system can be written"
    if any(not lower.queued for lower in below):
        yield "a queue of requests, which this kind of disk has not"
    if missing := [knob for knob in WEIGHTS if knob not in supported]:
        yield f"{', '.join(missing)}: cgroup v2 with io.cost"


def _measured(disk: Disk, disks: Mapping[str, Disk]) -> bool:
    below = list(leaves(disk, disks))
    return disk.calibrated or (len(below) == 1 and below[0].calibrated)


def _capacity(disk: Disk) -> str:
    if not disk.read_bps:
        return "not measured"
    writes = f"writes {spell('diskWrite', disk.write_bps)}/s" if disk.write_bps else "writes not measured"
    return f"reads {spell('diskRead', disk.read_bps)}/s, {writes}"
