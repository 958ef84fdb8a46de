"""Which tasks a workload has now: those of its cgroup and of all cgroups below."""

from __future__ import annotations

import os
from collections.abc import Iterator
from errno import EOPNOTSUPP
from typing import Final

from j10ce.errors import Denied
from j10ce.host.files import with_below
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.model.workload import Handle

_FILES: Final = {(1, False): "tasks", (2, False): "cgroup.threads"}
_PROCESSES: Final = "cgroup.procs"
_GONE: Final = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
_CHUNK: Final = 1 << 16


class Roll:
    """By the hierarchy of the cpu controller, which every workload is in. A number is a task's id as this process sees
    it; 0 stands for one that lives outside our PID namespace."""

    def __init__(self, hierarchies: Hierarchies) -> None:
        self._hierarchies = hierarchies
        self._controller = "cpu" if hierarchies.version("cpu") is not None else UNIFIED
        self._version = hierarchies.version(self._controller) or 2

    def directory(self, at: Handle) -> str:
        return self._hierarchies.directory(self._controller, at.path_of(self._controller))

    def identity(self, at: Handle) -> int | None:
        """The cgroup's id, which no other at this path has within a boot; None when it is gone."""
        try:
            return os.stat(self.directory(at)).st_ino
        except _GONE:
            return None

    def tasks(self, at: Handle, *, processes: bool) -> frozenset[int] | None:
        """None when the workload is gone."""
        top = self.directory(at)
        if not os.path.isdir(top):
            return None
        name = _FILES.get((self._version, processes), _PROCESSES)
        return frozenset(task for directory in with_below(top) for task in _listed(f"{directory}/{name}"))


def _listed(path: str) -> Iterator[int]:
    """A cgroup that goes while it is read has no tasks; one that is threaded leaves its processes to the one above."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            text = b"".join(iter(lambda: os.read(fd, _CHUNK), b""))
        finally:
            os.close(fd)
    except _GONE:
        return
    except OSError as e:
        if e.errno == EOPNOTSUPP:
            return
        raise Denied(f"cannot read {path}: {e.strerror}") from e
    yield from map(int, text.split())
