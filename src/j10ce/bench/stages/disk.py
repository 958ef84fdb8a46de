"""A disk of the run's own: a loop device over memory without a name. No other disk is touched.

The kernel lets go of it with the last process that has it open, so it does not outlive this one.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from j10ce.bench.scratch import Scratch
from j10ce.bench.stages.stage import Scene
from j10ce.errors import Unsupported
from j10ce.model.kinds import NodeStrategySpec
from j10ce.model.parts.devices import DiskOverlay, DisksSection
from j10ce.model.quantity import Quantity

CONTROL: Final = "/dev/loop-control"
BYTES: Final = 256 << 20
LONG: Final = 1 << 20
BLOCK: Final = 4096
SECTOR: Final = 512
TRY_S: Final = 0.5
FLOOR_SHARE: Final = 0.25
TRIES: Final = 20
_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_FLUSH: Final = 0x1261  # BLKFLSBUF
_AUTOCLEAR: Final = 4
_CONFIG: Final = struct.Struct("=II52xI176x64x")  # the file, the size of a block, and flags among much else


class LoopDisk(NamedTuple):
    fd: int
    path: str

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def forget(self) -> None:
        """Memory has none of it."""
        fcntl.ioctl(self.fd, _FLUSH)

    def read(self) -> int:
        """Bytes so far."""
        return SECTOR * int(self._counters()[2])

    def written(self) -> int:
        return SECTOR * int(self._counters()[6])

    def _counters(self) -> list[str]:
        return Path(f"/sys/block/{self.name}/stat").read_text().split()


@contextmanager
def disk(scratch: Scratch) -> Iterator[Scene]:
    """The service reads the first half, the others write the second."""
    with attached(BYTES) as one:
        half = BYTES // 2
        reads, read_iops = speed(one, os.preadv)
        writes, write_iops = speed(one, os.pwritev)
        said = DiskOverlay(
            managed=True, read_bps=_whole(reads), write_bps=_whole(writes), read_iops=read_iops, write_iops=write_iops
        )
        yield Scene(
            f"{one.path}:0:{half}",
            f"{one.path}:{half}:{half}",
            {"diskRead": str(int(reads * FLOOR_SHARE))},
            NodeStrategySpec(io=DisksSection(disks={one.name: said})),
            used_s=lambda: one.read() / reads + one.written() / writes,
        )


@contextmanager
def attached(size: int) -> Iterator[LoopDisk]:
    memory = os.memfd_create("disk")
    try:
        os.posix_fallocate(memory, 0, size)
        one = _attach(memory)
    finally:
        os.close(memory)
    try:
        yield one
    finally:
        os.close(one.fd)


def _attach(memory: int) -> LoopDisk:
    """Somebody else may take the free one first: then the next."""
    for _ in range(TRIES):
        try:
            with open(CONTROL, "rb", buffering=0) as control:
                path = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError as e:
            raise Unsupported(f"a loop device ({e.strerror})", needs=f"{CONTROL}, and rights to it") from e
        try:
            fcntl.ioctl(fd, _CONFIGURE, _CONFIG.pack(memory, BLOCK, _AUTOCLEAR))
        except OSError as e:
            os.close(fd)
            if e.errno != errno.EBUSY:
                raise Unsupported(f"a loop device ({e.strerror})", needs="Linux 5.8") from e
            continue
        return LoopDisk(fd, path)
    raise Unsupported("a loop device", needs="one that nobody else takes")


def speed(one: LoopDisk, do: Callable[[int, list[mmap.mmap], int], int]) -> tuple[float, int]:
    """(bytes a second in long blocks, short blocks a second), one after the other."""
    rates = []
    for size in (LONG, BLOCK):
        with mmap.mmap(-1, size) as block:
            begun, count = time.monotonic(), 0
            while (passed := time.monotonic() - begun) < TRY_S:
                do(one.fd, [block], count * size % BYTES)
                count += 1
        rates.append(count / passed)
    return rates[0] * LONG, int(rates[1])


def _whole(rate: float) -> Quantity:
    return Quantity.parse(str(int(rate)))
