"""Disks are there or not; nobody makes or removes them."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final

from j10ce.host import disks
from j10ce.kernel import file
from j10ce.model.knob import TargetId, disk
from j10ce.model.machine.disk import parse_number
from j10ce.model.workload import Handle

PREFIX: Final = "disk/"


class DiskEstate:
    """Asked for on every tick: one listing, and a number read for each name that came."""

    kind = "disk"

    def __init__(self, sys: str = disks.SYS) -> None:
        self._sys = sys
        self._numbers: dict[str, str] = {}  # by name
        self._targets: Collection[TargetId] = ()

    def targets(self) -> Collection[TargetId]:
        names = self._names()
        if names != self._numbers.keys():
            self._numbers = {n: file.read(f"{self._sys}/block/{n}/dev") or "" for n in names}
            self._targets = tuple(sorted(disk(n) for n in self._numbers.values() if parse_number(n)))
        return self._targets

    def place(self, target: TargetId, /) -> Handle | None:
        """Its number: what is written of a disk begins with it."""
        number = target.removeprefix(PREFIX)
        return Handle(number) if parse_number(number) else None

    def identity(self, at: Handle, /) -> int | None:
        """Another disk that gets the number of one that was taken out is another disk."""
        return disks.identity(at.path, self._sys)

    def _names(self) -> set[str]:
        try:
            return {n for n in os.listdir(f"{self._sys}/block") if disks.takes_io(n)}
        except FileNotFoundError:
            return set()
