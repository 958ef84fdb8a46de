"""Pressure: what the files say, and triggers that wake the ring when a spike begins."""

from __future__ import annotations

import os
import select
from collections.abc import Collection, Iterable
from typing import Final, Literal

from j10ce.host.files import ABSENT
from j10ce.host.handles import Layout
from j10ce.host.mounts import UNIFIED
from j10ce.observe.sensors.counters import pick

PRESSURES: Final = ("cpu", "memory", "io")
STALL: Final = 0.15  # share of a window in which some task must have waited

Mode = Literal["1s", "2s", "none", "absent"]
# Without CAP_SYS_RESOURCE the kernel takes only windows that are a multiple of 2 s.
WINDOWS: Final[tuple[tuple[Mode, int], ...]] = (("1s", 1_000_000), ("2s", 2_000_000))


def total_us(text: bytes) -> int:
    """Microseconds in which some task waited, ever."""
    return pick(text, b"total=") or 0


def worth_watching(layout: Layout, own: Iterable[str]) -> set[str]:
    """The pressure files whose spikes call for a look at once: of the node, our top groups, and the tiers in `own`.

    Not the CPU of the node, of a top group, or of best-effort: where best-effort fills the machine, its tasks wait
    all the time, as they should.
    """
    files = {f"/proc/pressure/{p}" for p in ("memory", "io")}
    if layout.hierarchies.unified is None:
        return files
    for path in own:
        waits = path in layout.tops
        for pressure in ("memory",) if waits else ("memory", "cpu"):
            files.add(layout.hierarchies.file(UNIFIED, path, f"{pressure}.pressure"))
    return files


class Triggers:
    """Pressure files whose spikes make `fileno()` readable: `loop.add_reader(triggers.fileno(), wake)`.

    Readable is the whole message: an event loop that watches the descriptor consumes the event on the way, so that
    which file it was nobody knows any more (the samples show it). `wake` calls `drain`, once.
    A file that takes no trigger is read by the next tick.
    """

    def __init__(self, stall: float = STALL) -> None:
        self._stall = stall
        self._epoll = select.epoll()
        self._paths: dict[int, str] = {}
        self._without: set[str] = set()  # files that take no trigger

    def fileno(self) -> int:
        return self._epoll.fileno()

    def watch(self, path: str) -> Mode:
        """Register one pressure file, once. `absent`: there is none; `none`: it takes no trigger."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as e:  # not ours to write, or on a mount that nobody may write
            return "absent" if e.errno in ABSENT else self._do_without(path)
        for mode, window_us in WINDOWS:
            try:
                os.write(fd, b"some %d %d\0" % (self._stall * window_us, window_us))
                self._epoll.register(fd, select.EPOLLPRI)
            except OSError:  # EINVAL: this window is not for us; EBUSY, EOPNOTSUPP, ENOMEM: no trigger at all
                continue
            self._paths[fd] = path
            return mode
        os.close(fd)
        return self._do_without(path)

    def follow(self, paths: Collection[str]) -> dict[str, Mode]:
        """Watch exactly these; the answer is for those that were not watched."""
        watched = {*self._paths.values(), *self._without}
        for path in watched.difference(paths):
            self._drop(path)
        return {path: self.watch(path) for path in sorted(set(paths) - watched)}

    def _do_without(self, path: str) -> Mode:
        self._without.add(path)
        return "none"

    def drain(self) -> None:
        """Take what is pending, and let go of files whose cgroup is gone: those would stay readable for ever."""
        for fd, event in self._epoll.poll(0):
            if event & select.EPOLLERR:
                self._close(fd)

    def _drop(self, path: str) -> None:
        self._without.discard(path)
        for fd in [fd for fd, watched in self._paths.items() if watched == path]:
            self._close(fd)

    def _close(self, fd: int) -> None:
        del self._paths[fd]
        self._epoll.unregister(fd)
        os.close(fd)  # the kernel forgets a trigger with its descriptor

    def close(self) -> None:
        for fd in list(self._paths):
            self._close(fd)
        self._without.clear()
        self._epoll.close()
