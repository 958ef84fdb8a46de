"""One agent per host: a lock file in the run directory, held for the life of the process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from j10ce.errors import Busy

NAME: Final = "agent.lock"


class Lock:
    """The kernel drops it when the process ends, however it ends; the file says who holds it."""

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / NAME
        self._fd = -1

    def take(self, mode: str) -> None:
        """Raises Busy, naming the holder. `mode` tells others what kind of agent this is."""
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            pid, other = holder(self.path.parent)
            raise Busy(f"an agent runs already on {self.path.parent}: process {pid} ({other})") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {mode}\n".encode(), 0)
        self._fd = fd

    def drop(self) -> None:
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def held(run_dir: Path) -> bool:
    """Whether some process has it now, whatever the file says: it is empty an instant before it is free."""
    try:
        fd = os.open(run_dir / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(run_dir: Path) -> tuple[int, str]:
    """(pid, mode) as the lock file has it; (0, "unknown") when it says nothing."""
    try:
        pid, mode = (run_dir / NAME).read_text().split()
        return int(pid), mode
    except (OSError, ValueError):
        return 0, "unknown"
