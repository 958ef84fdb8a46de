"""The log of pods that have left their slots: one CSV line each, for whoever analyses how pods were served."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import structlog

from j10ce.errors import Denied
from j10ce.scheduler.accounts.accounts import Departure
from j10ce.scheduler.accounts.line import COLUMNS, line

log = structlog.get_logger()
APPENDING: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class DepartureLog:
    """Appended to, by this process alone; every replica sees all pods, so each has a file of its own."""

    def __init__(self, file: Path) -> None:
        """Raises Denied."""
        self._file = file
        try:
            self.descriptor = os.open(file, APPENDING, 0o600)
            if not os.fstat(self.descriptor).st_size:
                self._write(",".join(COLUMNS))
        except OSError as e:
            raise Denied(f"cannot write {file} (--qos-log): {e.strerror}") from None
        self._full = False

    def departed(self, departure: Departure) -> None:
        """A disk that is full loses lines, and stops nothing."""
        try:
            self._write(line(departure))
            self._full = False
        except OSError as e:
            if not self._full:
                log.warning("departure.lost", file=str(self._file), error=e.strerror)
            self._full = True

    def _write(self, text: str) -> None:
        """One write a line: what others read is whole."""
        os.write(self.descriptor, f"{text}\n".encode())
