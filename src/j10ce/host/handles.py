"""From a workload's handle to its cgroups on this machine. Reads only."""

from __future__ import annotations

import os
from collections.abc import Collection

from j10ce.host.files import ABSENT, Files, read_whole
from j10ce.host.mounts import IN_USE, UNIFIED, Hierarchies, inside
from j10ce.model.knob import FREEZER
from j10ce.model.workload import APART, Handle, plain_path


class Layout:
    """Where cgroups are, which are ours, and what they tell about themselves."""

    def __init__(
        self, hierarchies: Hierarchies, files: Files, top: str, apart: str = "", *, everywhere: bool = True
    ) -> None:
        """`apart`: best effort's tree beside `top`, named as on plain directories unless given.

        `everywhere`: a cgroup of ours is in every hierarchy in use; systemd makes only those it needs.
        """
        self.hierarchies = hierarchies
        self.top = inside(top)
        self.tops = (self.top, inside(apart or plain_path(top, APART)))
        self._files = files
        self._everywhere = everywhere
        self._in_use = tuple(hierarchies.in_use())
        self._on_v1 = frozenset(c for c, version in hierarchies.available().items() if version == 1)
        self._on_v2 = any(hierarchies.version(c) == 2 for c in IN_USE if c != FREEZER)
        self._memory = "memory.usage_in_bytes" if hierarchies.version("memory") == 1 else "memory.current"
        self._sets: dict[bytes, frozenset[str]] = {}

    def ours(self, path: str) -> bool:
        """The top groups and all below them."""
        return f"{path}/".startswith(tuple(f"{top}/" for top in self.tops))

    def exists(self, handle: Handle, owned: bool) -> bool:
        """One of ours must be complete, so that a half-made one is made again."""
        present = (os.path.isdir(self._directory(c, handle)) for c in self._in_use)
        return all(present) if owned and self._everywhere else any(present)

    def busy(self, handle: Handle, known: Collection[str]) -> bool:
        """Whether processes are in it, or cgroups beside those `known`: then it cannot be removed."""
        return any(self._inhabited(self._directory(c, handle), known) for c in self._in_use)

    def _inhabited(self, directory: str, known: Collection[str]) -> bool:
        try:
            if read_whole(f"{directory}/cgroup.procs"):
                return True
            with os.scandir(directory) as entries:
                return any(e.is_dir(follow_symlinks=False) and e.name not in known for e in entries)
        except OSError as e:
            return e.errno not in ABSENT  # a threaded one does not list its processes

    def enabled(self, handle: Handle) -> frozenset[str] | None:
        """The controllers that its children have; v1 offers its own everywhere. None: the cgroup is gone."""
        if not self._on_v2:
            return self._on_v1
        text = self._files.read(f"{self._directory(UNIFIED, handle)}/cgroup.subtree_control")
        if text is None:
            return None
        if text not in self._sets:
            self._sets[text] = self._on_v1.union(text.decode().split())
        return self._sets[text]

    def memory_current(self, handle: Handle) -> float:
        """Bytes charged; 0 where nothing counts them."""
        if self.hierarchies.mount("memory") is None:
            return 0.0
        return float(self._files.read(f"{self._directory('memory', handle)}/{self._memory}") or 0)

    def _directory(self, controller: str, handle: Handle) -> str:
        return self.hierarchies.directory(controller, handle.path_of(controller))
