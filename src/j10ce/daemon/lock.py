"""Lock files, held for the life of the process: one agent per host, and one `j10ce-qos up`."""

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
        fd = claim(self.path, f"{os.getpid()} {mode}")
        if fd is None:
            pid, other = holder(self.path.parent)
            raise Busy(f"an agent runs already on {self.path.parent}: process {pid} ({other})")
        self._fd = fd

    def drop(self) -> None:
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def claim(path: Path, text: str) -> int | None:
    """Until the descriptor is closed, with `text` in the file; None while another process has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{text}\n".encode(), 0)
    return fd


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
