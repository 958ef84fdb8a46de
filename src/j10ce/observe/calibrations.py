"""Calibrations of disks on disk: `calibrate` writes them, an agent reads them again once the file is another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from j10ce.daemon.secret_files import write_private
from j10ce.errors import Corrupt
from j10ce.model.machine.calibration import FORMAT, Calibrated, Calibration, known
from j10ce.model.machine.disk import Disk

NAME: Final = "disks.json"
MOST_BYTES: Final = 1 << 20


class Calibrations:
    """Those of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / NAME
        self._stamp: tuple[int, int] | None = None
        self._read: Mapping[str, Calibration] = {}

    def changed(self) -> bool:
        """Since they were last looked at."""
        return self._now() != self._stamp

    def seen(self, disks: Mapping[str, Disk]) -> Mapping[str, Disk]:
        """With what was measured of each. A file that cannot be used counts as none: a disk is calibrated again."""
        if self.changed():
            self._stamp = self._now()
            try:
                self._read = self.load().disks
            except Corrupt:
                self._read = {}
        return {number: known(d, self._read.get(d.lasting)) for number, d in disks.items()} if self._read else disks

    def load(self) -> Calibrated:
        """Raises Corrupt for what cannot be read as ours."""
        try:
            with self.path.open("rb") as file:
                kept = msgspec.json.decode(file.read(MOST_BYTES), type=Calibrated)
        except FileNotFoundError:
            return Calibrated()
        except (OSError, msgspec.MsgspecError, RecursionError) as e:
            raise Corrupt(f"{self.path} cannot be used ({e}); remove it and calibrate again") from None
        if kept.format != FORMAT:
            raise Corrupt(f"{self.path} was written in format {kept.format}; this one reads {FORMAT}")
        return kept

    def keep(self, disk: Disk, calibration: Calibration) -> None:
        """In place of the one before; others stay. What cannot be read is replaced, since nothing reads it."""
        try:
            before = self.load()
        except Corrupt:
            before = Calibrated()
        disks = {**before.disks, disk.lasting: calibration}
        write_private(self.path, msgspec.json.encode(replace(before, disks=disks)).decode() + "\n")

    def _now(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns
