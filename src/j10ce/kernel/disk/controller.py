"""The files of the controller of disks: `io` on cgroup v2, `blkio` on v1."""

from __future__ import annotations

import os
from typing import Literal

from j10ce.host import disks
from j10ce.host.mounts import IO, Hierarchies
from j10ce.kernel import file
from j10ce.model.plan import Gone, Refused
from j10ce.model.workload import Handle


class IoController:
    """Of this machine. A path is a cgroup's, the empty one the root's."""

    def __init__(self, hierarchies: Hierarchies) -> None:
        self._hierarchies = hierarchies

    @property
    def version(self) -> Literal[1, 2] | None:
        return self._hierarchies.version(IO)

    def read(self, path: str, name: str) -> str | None:
        """None: the cgroup is gone, or has no such file."""
        return file.read(self._hierarchies.file(IO, path, name))

    def write(self, path: str, name: str, text: str) -> Refused | Gone | None:
        return file.write(self._hierarchies.file(IO, path, name), text)

    def has_disk(self, number: str) -> bool:
        """Or a partition with that number."""
        return disks.identity(number) is not None

    def children(self) -> list[str]:
        """The cgroups right below the root."""
        with os.scandir(self._hierarchies.directory(IO, "")) as entries:
            return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))


def place(at: Handle) -> str:
    return at.path_of(IO)
