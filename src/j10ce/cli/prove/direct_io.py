"""Measures a disk by direct I/O on an open file or device: beside the page cache, many at a time."""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Final, NamedTuple

BLOCK: Final = 4096
LONG: Final = 1 << 20
TICK_S: Final = 0.2
MOST_TIMES: Final = 20_000  # of single operations that a thread remembers
BUSY: Final = 0.9  # of a CPU: no disk has been measured, but how fast this program is


class Work(NamedTuple):
    """One thing to measure."""

    name: str
    write: bool
    block: int
    anywhere: bool
    depth: int  # operations at a time


WORKS: Final = (
    Work("long reads", False, LONG, False, 4),
    Work("reads in sequence", False, BLOCK, False, 16),
    Work("reads anywhere", False, BLOCK, True, 16),
    Work("long writes", True, LONG, False, 4),
    Work("writes in sequence", True, BLOCK, False, 16),
    Work("writes anywhere", True, BLOCK, True, 16),
)


class Figure(NamedTuple):
    """What came out of it."""

    bps: float
    iops: float
    slow_us: float  # the slowest twentieth took so long or longer
    bound: bool  # by this program's CPU time, so the disk does more


class OpenDisk(NamedTuple):
    """Where it is measured: an open file of ours, or a device that is only read."""

    fd: int
    size: int
    writable: bool


@contextmanager
def scratch(folder: str) -> Iterator[OpenDisk]:
    """A file without a name, which the kernel takes away with this process, however that ends."""
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    try:
        yield OpenDisk(fd, 0, True)
    finally:
        os.close(fd)


@contextmanager
def device(path: str) -> Iterator[OpenDisk]:
    """Never written to."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        yield OpenDisk(fd, os.lseek(fd, 0, os.SEEK_END), False)
    finally:
        os.close(fd)


def fill(place: OpenDisk, most: int, seconds: float, tick: Callable[[float], None]) -> OpenDisk:
    """With data that nothing can make smaller, until it is `most` bytes or `seconds` have passed."""
    began, written = time.monotonic(), 0
    with _buffer(LONG) as buffer:
        while written < most and (written < LONG or time.monotonic() - began < seconds):
            buffer[:] = os.urandom(LONG)
            written += os.pwrite(place.fd, buffer, written)
            tick(time.monotonic() - began)
        os.fsync(place.fd)
    return place._replace(size=written // LONG * LONG)


def measure(place: OpenDisk, work: Work, seconds: float, tick: Callable[[float], None]) -> Figure:
    """Until something is done and the time is over. Raises the first OSError of any of its threads; ends them all
    before it returns, also by Ctrl-C."""
    crew = _Crew(place, work)
    began, worked = time.monotonic(), time.process_time()
    try:
        crew.start()
        while ((passed := time.monotonic() - began) < seconds or not crew.done) and not crew.failed:
            tick(passed)
            crew.stop.wait(min(TICK_S, max(0.01, seconds - passed)))
    finally:
        crew.end()
    if crew.failed:
        raise crew.failed[0]
    if work.write:
        os.fdatasync(place.fd)  # what a disk has only taken is not written yet
    took = max(1e-9, time.monotonic() - began)
    bound = time.process_time() - worked > BUSY * took
    times = sorted(t for line in crew.times for t in line)
    slow = times[int(len(times) * 0.95)] if times else 0.0
    return Figure(crew.done * work.block / took, crew.done / took, slow * 1e6, bound)


class _Crew:
    """Threads that do the same until they are stopped."""

    def __init__(self, place: OpenDisk, work: Work) -> None:
        self._place, self._work = place, work
        self._blocks = place.size // work.block
        self._next = count()  # shared: those in sequence go through the file together
        self.stop = threading.Event()
        self.failed: list[OSError] = []
        self.times: list[list[float]] = [[] for _ in range(work.depth)]
        self._counts = [0] * work.depth
        self._threads = [threading.Thread(target=self._toil, args=(i,), daemon=True) for i in range(work.depth)]

    @property
    def done(self) -> int:
        return sum(self._counts)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _toil(self, index: int) -> None:
        try:
            with _buffer(self._work.block) as buffer:
                if self._work.write:
                    buffer[:] = os.urandom(len(buffer))
                self._repeat(index, buffer, Random(index))  # noqa: S311 no secret
        except OSError as e:
            self.failed.append(e)
            self.stop.set()

    def _repeat(self, index: int, buffer: mmap.mmap, dice: Random) -> None:
        fd, block, blocks, times = self._place.fd, self._work.block, self._blocks, self.times[index]
        do = self._write if self._work.write else self._read
        while not self.stop.is_set():
            number = dice.randrange(blocks) if self._work.anywhere else next(self._next) % blocks
            before = time.perf_counter()
            if do(fd, buffer, number * block) != block:
                raise OSError(errno.EIO, "less was read or written than is there")
            self._counts[index] += 1
            if len(times) < MOST_TIMES:
                times.append(time.perf_counter() - before)

    @staticmethod
    def _read(fd: int, buffer: mmap.mmap, at: int) -> int:
        return os.preadv(fd, [buffer], at)

    @staticmethod
    def _write(fd: int, buffer: mmap.mmap, at: int) -> int:
        return os.pwrite(fd, buffer, at)


@contextmanager
def _buffer(size: int) -> Iterator[mmap.mmap]:
    """At the beginning of a page, as direct I/O wants it."""
    with mmap.mmap(-1, size) as buffer:
        yield buffer
