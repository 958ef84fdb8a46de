"""Facts about a process, and a handle that its id's next owner cannot inherit."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from j10ce.host.mounts import UNIFIED
from j10ce.kernel import file

_PF_KTHREAD: Final = 0x00200000
_UNIT: Final = re.compile(r"[^/]+\.(?:service|scope)$")
_POD: Final = re.compile(r"(?:^|/)(?:kubepods[^/]*|docker|libpod[^/]*|crio[^/]*|nomad[^/]*)/")


class Process(Struct, frozen=True):
    pid: int
    parent: int
    uid: int  # the real one: who started it
    started: int  # clock ticks since boot; with the pid it names one process for the life of this boot
    kernel_thread: bool
    command: str
    cgroups: Mapping[str, str]  # controller to path without a leading slash; cgroup2 is `unified`

    def path(self, controller: str) -> str:
        """Its cgroup in the hierarchy of a controller; the controller may live on cgroup2."""
        return self.cgroups.get(controller, self.cgroups.get(UNIFIED, ""))

    @property
    def belongs_to(self) -> str:
        """The service or container whose process it is and stays; empty for one that may be moved.

        Scopes of a login session or of a terminal hold what a user started by hand: those may be moved.
        """
        for path in dict.fromkeys(self.cgroups.values()):
            if _POD.search(path):
                return path
            units = [step for step in path.split("/") if _UNIT.match(step)]
            if units and units[-1].endswith(".service"):
                return units[-1]
        return ""


def process(pid: int, proc: str = "/proc") -> Process | None:
    """What /proc says; None when there is no such process."""
    stat = file.read(f"{proc}/{pid}/stat")
    status, cgroup = file.read(f"{proc}/{pid}/status"), file.read(f"{proc}/{pid}/cgroup")
    if stat is None or status is None or cgroup is None:
        return None
    # The command is in parentheses and may hold any character, so count from the last one.
    fields = stat[stat.rindex(")") + 2 :].split()
    uids = next(line.split() for line in status.splitlines() if line.startswith("Uid:"))
    return Process(
        pid=pid,
        parent=int(fields[1]),
        uid=int(uids[1]),
        started=int(fields[19]),
        kernel_thread=bool(int(fields[6]) & _PF_KTHREAD),
        command=stat[stat.index("(") + 1 : stat.rindex(")")],
        cgroups=dict(memberships(cgroup)),
    )


def memberships(text: str) -> Iterator[tuple[str, str]]:
    """The lines of /proc/<pid>/cgroup as controller and path."""
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        for controller in controllers.split(",") if controllers else [UNIFIED] if number == "0" else []:
            yield controller, path.removesuffix(" (deleted)").strip("/")


def immovable(pid: int) -> str:
    """Why a process must never be moved by anyone, or nothing. A vanished process is no reason."""
    if pid <= 1:
        return f"process {pid} is the system's own and is never moved"
    found = process(pid)
    return f"process {pid} ({found.command}) is a kernel thread" if found and found.kernel_thread else ""


@contextmanager
def pinned(pid: int) -> Iterator[int | None]:
    """A pidfd for the time of the block; None when the process is gone. See `alive`."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def alive(pidfd: int) -> bool:
    """Whether the very process that was pinned still runs (a zombie does not)."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return not poll.poll(0)
