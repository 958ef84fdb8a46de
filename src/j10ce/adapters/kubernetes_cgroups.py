"""Where pods and their containers are in the cgroup tree: found by looking, whatever driver and runtime made them.

cgroupfs driver     [<root>/]kubepods[/burstable|/besteffort]/pod<uid>/<container>
systemd driver      [<root>.slice/…/]kubepods.slice[/kubepods-burstable.slice]/kubepods-burstable-pod<uid>.slice/
                    cri-containerd-<container>.scope, crio-<container>.scope, docker-<container>.scope

A pod of class Guaranteed is right below kubepods. systemd's names have `_` where a uid has `-`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from j10ce.host.mounts import IO, UNIFIED, Hierarchies
from j10ce.model.knob import FREEZER
from j10ce.model.workload import Handle

DEEPEST: Final = 4  # steps down to kubepods: a kubelet may itself run in a container
ROOT: Final = re.compile(r"(?:.+-)?kubepods(?:\.slice)?")
LEVEL: Final = re.compile(r"burstable|besteffort|(?:.+-)?kubepods-(?:burstable|besteffort)\.slice")
POD: Final = re.compile(r"pod([\w.-]+)|(?:.+-)?kubepods(?:-burstable|-besteffort)?-pod([\w.]+)\.slice")
CONTAINER: Final = re.compile(r"(?:(?:cri-containerd|crio|docker|libpod)-)?([0-9a-f]{32,64})(?:\.scope)?")
UNITS: Final = (".slice", ".scope")


class PodTree:
    """Reads only. What `look` found stays until the next one."""

    def __init__(self, hierarchies: Hierarchies) -> None:
        # The cgroup2 tree of a hybrid machine carries no controller; a pod without processes may be missing there, and
        # not every kubelet puts one into a freezer, or into blkio.
        used = hierarchies.in_use()
        self._controllers = [c for c in used if c not in (UNIFIED, FREEZER, IO)] or list(used)
        self._hierarchies = hierarchies
        self._roots: tuple[str, ...] = ()
        self._pods: dict[str, str] = {}  # path by uid

    def look(self) -> None:
        """Which pods there are: a listing of each level above them."""
        if not self._pods:
            self._roots = tuple(self._find("", DEEPEST)) if self._controllers else ()
        present = {uid: path for root in self._roots for uid, path in self._inside(root)}
        known = self._pods
        self._pods = {uid: path for uid, path in present.items() if known.get(uid) == path or self._complete(path)}

    def pod(self, uid: str) -> Handle | None:
        """None: it is not there, or not in every hierarchy yet."""
        path = self._pods.get(_spelled(uid))
        return None if path is None else _handle(path)

    def containers(self, pod: Handle) -> dict[str, Handle]:
        """By the runtime's id. The sandbox is among them."""
        matches = ((CONTAINER.fullmatch(name), name) for name in self._names(pod.path))
        return {match[1]: _handle(f"{pod.path}/{name}") for match, name in matches if match}

    def _find(self, path: str, depth: int) -> Iterator[str]:
        """Every kubepods; several kubelets may share a machine."""
        for name in self._names(path):
            below = f"{path}/{name}" if path else name
            if ROOT.fullmatch(name):
                yield below
            elif depth > 1:
                yield from self._find(below, depth - 1)

    def _inside(self, group: str) -> Iterator[tuple[str, str]]:
        for name in self._names(group):
            if match := POD.fullmatch(name):
                yield _spelled(match[1] or match[2]), f"{group}/{name}"
            elif LEVEL.fullmatch(name):
                yield from self._inside(f"{group}/{name}")

    def _complete(self, path: str) -> bool:
        return all(os.path.isdir(self._hierarchies.directory(c, path)) for c in self._controllers)

    def _names(self, path: str) -> list[str]:
        try:
            with os.scandir(self._hierarchies.directory(self._controllers[0], path)) as entries:
                return [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:  # gone since it was listed
            return []


def _spelled(uid: str) -> str:
    return uid.replace("-", "_")


def _handle(path: str) -> Handle:
    name = path.rpartition("/")[2]
    return Handle(path=path, unit=name if name.endswith(UNITS) else "", made=False)
