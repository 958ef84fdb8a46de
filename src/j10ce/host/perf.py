"""Hardware counters of a cgroup through perf_event_open(2): cycles and instructions. Reads only.

glibc has no function for the call, so it is made by number.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from errno import EACCES, ENOENT, ENOSYS, EOPNOTSUPP, EPERM
from typing import Final, NamedTuple

from j10ce.errors import Unsupported

CALL: Final = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
HARDWARE, CYCLES, INSTRUCTIONS = 0, 0, 1
GROUPED: Final = 8  # PERF_FORMAT_GROUP: one read has both counters
OF_CGROUP, CLOSE_ON_EXEC = 4, 8  # flags of the call
ATTR: Final = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr as of its first version, 64 bytes
ANSWER: Final = struct.Struct("=3Q")  # how many, and each
NEEDS: Final = {
    ENOENT: "a CPU with hardware counters, which virtual machines seldom show",
    EOPNOTSUPP: "a CPU with hardware counters, which virtual machines seldom show",
    ENOSYS: "a kernel with CONFIG_PERF_EVENTS",
    EACCES: "CAP_PERFMON, or kernel.perf_event_paranoid at 0 or less",
    EPERM: "CAP_PERFMON, or kernel.perf_event_paranoid at 0 or less",
}
FEATURE: Final = "cpi"


class Counts(NamedTuple):
    cycles: int
    instructions: int


class PerfCounters:
    """Both counters on every CPU of the tasks in one cgroup, from now on."""

    def __init__(self, directory: str, cpus: frozenset[int]) -> None:
        """Raises Unsupported where there is no such counter, OSError where there is no such cgroup."""
        self._fds: list[tuple[int, int]] = []
        cgroup = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for cpu in sorted(cpus):
                leader = _open(CYCLES, cgroup, cpu, -1, OF_CGROUP)
                self._fds.append((leader, -1))
                self._fds[-1] = (leader, _open(INSTRUCTIONS, cgroup, cpu, leader, OF_CGROUP))
        except BaseException:
            self.close()
            raise
        finally:
            os.close(cgroup)

    def read(self) -> Counts:
        answers = [ANSWER.unpack(os.read(leader, ANSWER.size)) for leader, _ in self._fds]
        return Counts(sum(a[1] for a in answers), sum(a[2] for a in answers))

    def close(self) -> None:
        for leader, member in self._fds:
            if member >= 0:
                os.close(member)
            os.close(leader)
        self._fds.clear()


def missing() -> str:
    """What cycles and instructions need that is not here; empty where they can be counted."""
    try:
        os.close(_open(CYCLES, os.getpid(), -1, -1, 0))
    except Unsupported as e:
        return e.needs
    return ""


def _open(config: int, who: int, cpu: int, leader: int, flags: int) -> int:
    number = CALL.get(platform.machine())
    if number is None:
        raise Unsupported(FEATURE, needs=f"an architecture whose call is known, {', '.join(sorted(CALL))}")
    attr = ATTR.pack(HARDWARE, ATTR.size, config, 0, 0, GROUPED, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(n) for n in (who, cpu, leader, flags | CLOSE_ON_EXEC)]
    fd = int(libc.syscall(ctypes.c_long(number), ctypes.c_char_p(attr), *words))
    if fd >= 0:
        return fd
    error = ctypes.get_errno()
    if needs := NEEDS.get(error):
        raise Unsupported(FEATURE, needs=needs)
    raise OSError(error, os.strerror(error), "perf_event_open")
