"""Whether the machine runs short of memory: tasks that look for free pages themselves, and allocations that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from j10ce.host.files import read_whole
from j10ce.model.knob import NODE
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import CLOSE_EVERY, Rate, pick

VMSTAT: Final = "/proc/vmstat"
SCANNED: Final = b"\npgscan_direct "
REFAULTS: Final = b"\nworkingset_refault_"  # anon, file; one number for both before Linux 5.9
STALLS: Final = b"\nallocstall_"  # one for each zone


class ReclaimSensor:
    """Of the node; what a single cgroup had to do is in its own memory.stat."""

    name = "reclaim"

    def __init__(self, root: str = "") -> None:
        self._path = root + VMSTAT
        self._rates = {"memory.direct_reclaim": Rate(), "memory.stalls": Rate(), "memory.refaults": Rate()}
        self._sampled = 0

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterator[Sample]:
        self._sampled += 1
        text = read_whole(self._path) if self._sampled % CLOSE_EVERY == 0 else None
        if not text:
            return
        counts = {
            "memory.direct_reclaim": pick(text, SCANNED),
            "memory.stalls": _sum(text, STALLS),
            "memory.refaults": _sum(text, REFAULTS),
        }
        for metric, count in counts.items():
            if count is not None and (rate := self._rates[metric].of(now, count)) is not None:
                yield Sample(NODE, metric, rate)


def _sum(text: bytes, prefix: bytes) -> int | None:
    """Of all lines that begin so; None where there is none."""
    lines = text.split(prefix)[1:]
    return sum(int(line.split(None, 2)[1]) for line in lines) if lines else None


_: type[Sensor] = ReclaimSensor
