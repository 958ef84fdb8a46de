"""Facts about a process, and a handle that its id's next owner cannot inherit."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct

from j10ce.errors import Denied
from j10ce.host.mounts import BLKIO, IO, UNIFIED
from j10ce.kernel import file

_PF_KTHREAD: Final = 0x00200000
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_UNIT: Final = re.compile(r"[^/]+\.(?:service|scope)$")
# Scopes of what a user started by hand: a login, a terminal, an application, systemd-run.
_BY_HAND: Final = re.compile(r"(?:session|app|run|vte-spawn|tmux-spawn)-[^/]*\.scope")
# A step of the path of a container, a pod or a machine, as runtimes name it: by a word, or by an id of 64 digits.
_CONTAINER: Final = re.compile(
    r"(kubelet-)?kubepods.*|docker|lxc|libvirt|mesos|garden|nomad(\.slice)?|slurm(_.*)?|lxc\.(payload|monitor|pivot).*"
    r"|(docker|libpod|crio|cri-containerd|nerdctl|containerd|buildkit|machine)-.*\.scope|(.*[-.])?[0-9a-f]{64}(\.scope)?"
)


class Process(Struct, frozen=True):
    pid: int
    parent: int
    uid: int  # the real one: who started it
    started: int  # clock ticks since boot; with the pid it names one process for the life of this boot
    kernel_thread: bool
    command: str
    cgroups: Mapping[str, str]  # controller to path without a leading slash; cgroup2 is `unified`
    inner: bool = False  # it lives in a PID namespace below ours, as containers and machines do

    def path(self, controller: str) -> str:
        """Its cgroup in the hierarchy of a controller; the controller may live on cgroup2."""
        return self.cgroups.get(controller, self.cgroups.get(UNIFIED, ""))

    @property
    def proof(self) -> str:
        """Tells it from the next process that gets its number, and from one that became another user's."""
        return f"{self.started}/{self.uid}"

    @property
    def container(self) -> str:
        """The cgroup of the container, pod or machine that it is in; empty for a process of the host."""
        paths = list(dict.fromkeys(self.cgroups.values()))
        named = next((path for path in paths if any(map(_CONTAINER.fullmatch, path.split("/")))), "")
        return named or (next(filter(None, paths), "another PID namespace") if self.inner else "")

    @property
    def belongs_to(self) -> str:
        """The container, service or scope whose process it is and stays; empty for one that may be moved.

        Scopes of a login session or of a terminal hold what a user started by hand: those may be moved, unless someone
        divides the scope further.
        """
        return self.container or next(filter(None, map(_unit_of, dict.fromkeys(self.cgroups.values()))), "")


def process(pid: int, proc: str = "/proc") -> Process | None:
    """What /proc says; None when there is no such process."""
    stat = file.read(f"{proc}/{pid}/stat")
    status, cgroup = file.read(f"{proc}/{pid}/status"), file.whole(f"{proc}/{pid}/cgroup")
    if stat is None or status is None or cgroup is None:
        return None
    fields = _after_command(stat)
    rows = {name: values.split() for name, _, values in (line.partition(":") for line in status.split("\n"))}
    return Process(
        pid=pid,
        parent=int(fields[1]),
        uid=int(rows["Uid"][0]),
        started=int(fields[19]),
        kernel_thread=bool(int(fields[6]) & _PF_KTHREAD),
        command=stat[stat.index("(") + 1 : stat.rindex(")")],
        cgroups=dict(memberships(cgroup)),
        inner=len(rows.get("NSpid", ())) > 1,
    )


def started(task: int, proc: str = "/proc") -> float | None:
    """When a process or a thread began, in seconds since boot; None when it is gone."""
    stat = file.read(f"{proc}/{task}/stat")
    return None if stat is None else int(_after_command(stat)[19]) / _TICKS


def _after_command(stat: str) -> list[str]:
    """The command is in parentheses and may hold any character, so count from the last one."""
    return stat[stat.rindex(")") + 2 :].split()


def descendants(pid: int, proc: str = "/proc") -> list[Process]:
    """All processes below one, parents first. One that cannot be read, as in a cgroup deeper than the kernel can tell,
    is left out: whoever's it is, nobody else's processes wait for it."""
    below: dict[int, list[Process]] = {}
    for name in filter(str.isdecimal, os.listdir(proc)):
        with suppress(Denied, ValueError):
            if one := process(int(name), proc):
                below.setdefault(one.parent, []).append(one)
    out = list(below.get(pid, ()))
    for parent in out:  # grows while it is walked
        out += below.get(parent.pid, ())
    return out


def _unit_of(path: str) -> str:
    steps = path.split("/")
    units = [step for step in steps if _UNIT.match(step)]
    if not units:
        return ""
    if units[-1].endswith(".service"):
        return units[-1]
    return "" if _BY_HAND.fullmatch(steps[-1]) else path


def proof(pid: int) -> str:
    """Of the process that has the number now; empty when there is none."""
    known = process(pid)
    return known.proof if known else ""


def memberships(text: str) -> Iterator[tuple[str, str]]:
    """The lines of /proc/<pid>/cgroup as controller and path. Only a line feed ends one: the kernel allows all else in
    a name, and a name that reads like a line of its own must not take its process elsewhere."""
    for line in filter(None, text.split("\n")):
        number, controllers, path = line.split(":", 2)
        for controller in controllers.split(",") if controllers else [UNIFIED] if number == "0" else []:
            yield IO if controller == BLKIO else controller, path.removesuffix(" (deleted)").strip("/")


def immovable(pid: int) -> str:
    """Why a process must never be moved by anyone, or nothing. A vanished process is no reason."""
    if pid <= 1:
        return f"process {pid} is the system's own and is never moved"
    known = process(pid)
    return f"process {pid} ({known.command}) is a kernel thread" if known and known.kernel_thread else ""


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
