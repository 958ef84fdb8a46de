"""What can be done to a cgroup besides setting its values: have memory taken back, end all inside."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import EAGAIN, EINTR
from typing import Final

from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.kernel import file
from j10ce.kernel.cgroup.spelling import Cgroup
from j10ce.model.knob import Deed, Support
from j10ce.model.plan import Action, Applied, Gone, Refused
from j10ce.model.workload import Handle

FILE: Final = "file"  # `only` of an action: page cache alone
AT_A_TIME: Final = 4 << 20  # bytes: asked for much at once, kernels before 6.9 take back far more than that
ROUNDS: Final = 20  # of signals to whoever is left: a process that forks meanwhile is met in the next one


class CgroupDeeds:
    def __init__(self, hierarchies: Hierarchies, release: tuple[int, int]) -> None:
        self._hierarchies = hierarchies
        self._reclaims = hierarchies.version("memory") == 2 and release >= (5, 19)
        self._chooses = release >= (6, 9)  # what is taken
        self._kills = release >= (5, 14)  # at once, on cgroup v2

    def support(self) -> Mapping[Deed, Support]:
        reclaim = Support(True, via="cgroup2") if self._reclaims else Support(False, needs="cgroup v2, kernel ≥ 5.19")
        return {Deed.RECLAIM: reclaim, Deed.KILL: Support(True, via="cgroup" if self._kills else "signals")}

    def act(self, action: Action, at: Handle) -> Applied | Refused | Gone:
        if action.deed is Deed.RECLAIM:
            return self._reclaim(action, at)
        return self._kill(at)

    def _reclaim(self, action: Action, at: Handle) -> Applied | Refused | Gone:
        """The kernel says EAGAIN where it got back less than it was asked for: that is an answer, not a failure."""
        cgroup = Cgroup(self._hierarchies.directory("memory", at.path_of("memory")))
        before = cgroup.number("memory.current")
        if before is None:
            return Gone()
        path, only = f"{cgroup.directory}/memory.reclaim", ""
        if action.only == FILE and self._chooses:
            only = " swappiness=0"  # older kernels divide it between page cache and the rest as they see fit
        for _ in range(math.ceil(action.amount / AT_A_TIME)):  # no more, also of something that grows meanwhile
            after = cgroup.number("memory.current")
            left = 0.0 if after is None else action.amount - (before - after)
            if left <= 0:
                break
            asked = f"{int(min(left, AT_A_TIME))}{only}"
            try:
                _ask(path, asked)
            except OSError as e:
                if e.errno in (EAGAIN, EINTR):
                    break
                return file.refusal(path, asked, e)
        after = cgroup.number("memory.current")
        return Gone() if after is None else Applied(max(0.0, before - after))

    def _kill(self, at: Handle) -> Applied | Refused | Gone:
        controller = "cpu" if self._hierarchies.version("cpu") is not None else UNIFIED
        directory = self._hierarchies.directory(controller, at.path_of(controller))
        if not os.path.isdir(directory):
            return Gone()
        if os.path.exists(f"{directory}/cgroup.kill"):
            return file.write(f"{directory}/cgroup.kill", "1") or Applied(1.0)
        for _ in range(ROUNDS):
            for pid, home in (left := list(_inside(directory))):
                _kill_if_there(pid, home)
            if not left:
                return Applied(1.0)
        return Refused(f"{directory} still has processes after {ROUNDS} rounds of SIGKILL")


def _ask(path: str, asked: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(fd, asked.encode())
    finally:
        os.close(fd)


def _inside(directory: str) -> Iterator[tuple[int, str]]:
    """Every process of a cgroup and those below, with the cgroup that lists it."""
    for home, _, _ in os.walk(directory):
        for pid in (file.read(f"{home}/cgroup.procs") or "").split():
            yield int(pid), home


def _kill_if_there(pid: int, home: str) -> None:
    """By a handle, after a second look: a number is not a process."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if str(pid) in (file.read(f"{home}/cgroup.procs") or "").split():
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
