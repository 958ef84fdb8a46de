"""A disk of a test's own: a loop device over a file, made with the kernel's own calls."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_SET_FD, _CLR_FD, _GET_FREE = 0x4C00, 0x4C01, 0x4C82
CONTROL: Final = "/dev/loop-control"


class Loop(NamedTuple):
    device: str
    number: str
    name: str

    def scheduler(self, name: str) -> None:
        """Unsupported where this kernel has no such scheduler."""
        path = Path(f"/sys/block/{self.name}/queue/scheduler")
        try:
            path.write_text(name)
        except OSError:
            pytest.skip(f"Unsupported: the scheduler {name} is not in this kernel")


def load_loop() -> None:
    """Where it is a module, as in Debian; where it is built in there may be no modprobe either."""
    if modprobe := shutil.which("modprobe"):
        subprocess.run([modprobe, "-q", "loop"], check=False)


@contextmanager
def loop(image: Path, size: int) -> Iterator[Loop]:
    """On a file system that holds a file of that size."""
    load_loop()
    if not os.path.exists(CONTROL):
        pytest.skip(f"Unsupported: loop devices need {CONTROL}")
    with image.open("wb") as file:
        file.truncate(size)
    with _attached(image) as device:
        number = os.stat(device).st_rdev
        yield Loop(device, f"{os.major(number)}:{os.minor(number)}", os.path.basename(device))


@contextmanager
def _attached(image: Path) -> Iterator[str]:
    """Another test may take the free one first: then the next."""
    with image.open("r+b") as file:
        for _ in range(20):
            with open(CONTROL, "rb", buffering=0) as control:
                device = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            with open(device, "r+b", buffering=0) as block:
                try:
                    fcntl.ioctl(block, _SET_FD, file.fileno())
                except OSError:
                    continue
                try:
                    yield device
                finally:
                    fcntl.ioctl(block, _CLR_FD)
                return
    pytest.skip("Unsupported: no loop device is free")
