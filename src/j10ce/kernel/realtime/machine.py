"""The kernel's counters and threads, for one process that looks fifty times a second.

SCHED_RR with RESET_ON_FORK at priority 1 is the mark of what is ours: nobody else uses it. Threads keep their nice
value meanwhile, so that SCHED_OTHER is all that the way back takes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from j10ce.host.files import with_below

PRIORITY: Final = 1
OURS: Final = os.SCHED_RR | os.SCHED_RESET_ON_FORK
FAIR: Final = os.SCHED_OTHER
ANOTHER: Final = -1  # policy of a thread that looks like ours, but has a priority of its own
_SLEEPS: Final = b"\nvoluntary_ctxt_switches:"
_PROCESSOR: Final = 36  # of the fields after the name, the CPU that a thread ran on last
_USEC: Final = b"usage_usec "
_CHUNK: Final = 1 << 16


class WardPlace(NamedTuple):
    """Where one workload is, all paths absolute."""

    top: str  # its directory in the hierarchy of the cpu controller
    threads: str  # the file there that lists threads
    usage: str  # cpuacct.usage, or cpu.stat of cgroup v2
    per_cpu: str = ""  # cpuacct.usage_percpu; empty where there is none


class Counters(Protocol):
    """Of a workload. None: it is gone."""

    def threads(self, place: WardPlace, /) -> set[int] | None: ...
    def usage_s(self, place: WardPlace, /) -> float | None: ...

    def births(self) -> int:
        """Another number than before once a thread has begun somewhere on the machine."""
        ...

    def per_cpu_s(self, place: WardPlace, /) -> list[float] | None:
        """None also where nobody counts by CPU."""
        ...


class Habits(Protocol):
    """Of a thread. None: it is gone."""

    def ran_s(self, thread: int, /) -> float | None: ...
    def sleeps(self, thread: int, /) -> int | None: ...
    def cpu(self, thread: int, /) -> int | None: ...


class ThreadPolicies(Protocol):
    def policy(self, thread: int, /) -> int | None: ...

    def change(self, thread: int, policy: int, /) -> str:
        """Why it cannot be; empty: it is, or the thread is gone."""
        ...


class ThreadMachine(Counters, Habits, ThreadPolicies, Protocol):
    """What the keeper knows of the kernel."""

    def forget(self, place: WardPlace, /) -> None:
        """Whoever comes to the same paths later is another workload."""
        ...


class Linux:
    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._open: dict[str, int] = {}  # counters, read again and again

    def threads(self, place: WardPlace, /) -> set[int] | None:
        if not os.path.isdir(place.top):
            return None
        return {thread for directory in with_below(place.top) for thread in _listed(f"{directory}/{place.threads}")}

    def usage_s(self, place: WardPlace, /) -> float | None:
        text = self._counter(place.usage)
        if not text:
            return None
        if text.startswith(_USEC):
            return int(text[len(_USEC) : text.index(b"\n")]) / 1e6
        return int(text) / 1e9

    def births(self) -> int:
        return int(self._counter(f"{self._proc}/loadavg").rpartition(b" ")[2] or 0)

    def per_cpu_s(self, place: WardPlace, /) -> list[float] | None:
        text = self._counter(place.per_cpu) if place.per_cpu else b""
        return [int(n) / 1e9 for n in text.split()] if text else None

    def ran_s(self, thread: int, /) -> float | None:
        text = _read(f"{self._proc}/{thread}/schedstat")
        return int(text.split(b" ", 1)[0]) / 1e9 if text else None

    def sleeps(self, thread: int, /) -> int | None:
        text = _read(f"{self._proc}/{thread}/status")
        at = text.find(_SLEEPS)
        return int(text[at + len(_SLEEPS) :].split(None, 1)[0]) if at >= 0 else None

    def cpu(self, thread: int, /) -> int | None:
        fields = _read(f"{self._proc}/{thread}/stat").rpartition(b") ")[2].split()
        return int(fields[_PROCESSOR]) if len(fields) > _PROCESSOR else None

    def policy(self, thread: int, /) -> int | None:
        try:
            policy = os.sched_getscheduler(thread)
            ours = policy != OURS or os.sched_getparam(thread).sched_priority == PRIORITY
            return policy if ours else ANOTHER
        except ProcessLookupError:
            return None

    def change(self, thread: int, policy: int, /) -> str:
        try:
            os.sched_setscheduler(thread, policy, os.sched_param(PRIORITY if policy == OURS else 0))
        except ProcessLookupError:
            return ""
        except OSError as e:
            return errno.errorcode.get(e.errno or 0, str(e.errno))
        return ""

    def forget(self, place: WardPlace, /) -> None:
        for path in (place.usage, place.per_cpu):
            if (fd := self._open.pop(path, None)) is not None:
                os.close(fd)

    def _counter(self, path: str) -> bytes:
        try:
            if (fd := self._open.get(path)) is None:
                fd = self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            return os.pread(fd, _CHUNK, 0)
        except OSError:  # the cgroup is gone; one that comes to its path later is another
            return b""


def is_ours(machine: ThreadPolicies, thread: int) -> bool:
    return machine.policy(thread) == OURS


def let_go(machine: ThreadPolicies, threads: Iterable[int]) -> list[str]:
    """To the fair class, those that are ours; why some would not."""
    return [why for t in threads if is_ours(machine, t) and (why := machine.change(t, FAIR))]


def _listed(path: str) -> Iterator[int]:
    """0 stands for a thread outside our PID namespace, which cannot be reached."""
    return (thread for thread in map(int, _read(path).split()) if thread)


def _read(path: str) -> bytes:
    """Empty for what is gone or cannot be read: a threaded cgroup leaves its processes to the one above."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(fd, _CHUNK), b""))
    except OSError:
        return b""
    finally:
        os.close(fd)
