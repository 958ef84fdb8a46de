"""How much of the last-level cache each group of resctrl holds, and how much it moves to and from memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from j10ce.host.files import Files
from j10ce.host.resctrl import ROOT
from j10ce.model.knob import TargetId, resctrl
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import Rate

OCCUPANCY: Final = "llc_occupancy"
MOVED: Final = "mbm_total_bytes"
MOST_GROUPS: Final = 32  # sampled; a CPU has hardly more
LOOK_S: Final = 30.0  # which groups and counters there are is asked so often


class CacheSensor:
    """Sums over all caches. Counters that a CPU lacks, or has none left of, yield nothing.

    Where there is no resctrl it costs one look every 30 s.
    """

    name = "caches"

    def __init__(self, files: Files, root: str = ROOT) -> None:
        self._files = files
        self._root = root
        self._folders: dict[str, list[str]] = {}  # of each group, one for every cache
        self._rates: dict[str, Rate] = {}
        self._looked = float("-inf")

    @property
    def targets(self) -> Collection[TargetId]:
        return [resctrl(group) for group in self._folders]

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        if not self._looked <= now < self._looked + LOOK_S:
            self._looked = now
            self._folders = dict(self._look())
            self._rates = {group: self._rates.get(group) or Rate() for group in self._folders}
        for group, folders in self._folders.items():
            held, moved = (self._sum(folders, name) for name in (OCCUPANCY, MOVED))
            if held is not None:
                yield Sample(resctrl(group), "cache.occupancy", float(held))
            if moved is not None and (rate := self._rates[group].of(now, moved)) is not None:
                yield Sample(resctrl(group), "memory.bandwidth", rate)

    def _look(self) -> Iterator[tuple[str, list[str]]]:
        """Only ours and others' groups; the root's own holds whatever is in none."""
        for group in _folders(self._root)[:MOST_GROUPS]:
            caches = [f for f in _folders(f"{self._root}/{group}/mon_data") if f.startswith("mon_L3_")]
            if caches:
                yield group, [f"{self._root}/{group}/mon_data/{cache}" for cache in caches]

    def _sum(self, folders: Iterable[str], name: str) -> int | None:
        """None where one of them has no number: the kernel writes `Unavailable` then."""
        texts = [(self._files.read(f"{folder}/{name}") or b"").strip() for folder in folders]
        return sum(map(int, texts)) if all(text.isdigit() for text in texts) else None


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(e.name for e in entries if e.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


_: Sensor = CacheSensor(Files(0))
