"""Where the cgroup hierarchies are mounted, and which controller lives where. Reads only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from j10ce.errors import Denied, Unsupported
from j10ce.model.knob import FREEZER

Mode = Literal["v1", "v2", "hybrid"]

UNIFIED: Final = "unified"  # stands for the cgroup2 mount wherever a controller is asked for
IO: Final = "io"  # the controller of disks, which cgroup v1 calls blkio
BLKIO: Final = "blkio"
# The controllers that carry our knobs and their counters.
IN_USE: Final = ("cpu", "cpuacct", "cpuset", "memory", FREEZER, IO)

_V1_CONTROLLERS: Final = frozenset((
    "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", BLKIO, "pids",
    "net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc",
))  # fmt: skip
_BOOTED: Final = "/run/systemd/system"  # there exactly when systemd is the init of this machine
_MOUNTINFO: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class Mount(Struct, frozen=True):
    """One mounted hierarchy."""

    path: str
    version: Literal[1, 2]
    controllers: frozenset[str]
    root: str = "/"  # which cgroup of the hierarchy is seen at `path`
    writable: bool = True
    recursive_protection: bool = False  # a parent's memory.min/low also protects children without their own


class Hierarchies(Struct, frozen=True):
    """The cgroup file systems of this machine, resolved per controller."""

    by_controller: Mapping[str, Mount]
    unified: Mount | None = None
    tracked: bool = False  # systemd knows its units by the cgroup2 tree: without controllers of ours it is left alone

    @classmethod
    def discover(cls, mountinfo: Path | str = _MOUNTINFO, booted: str = _BOOTED) -> Hierarchies:
        """From a mountinfo file, or from the text of one. Controllers of cgroup2 are read from its root."""
        text = mountinfo.read_bytes().decode(errors="replace") if isinstance(mountinfo, Path) else mountinfo
        mounts = list({m.path: m for m in _mounts(text)}.values())  # a later mount at the same place hides the earlier
        unified = _best([m for m in mounts if m.version == 2])
        by_controller: dict[str, Mount] = {}
        for controller in sorted({c for m in mounts for c in m.controllers}):
            # A controller is bound to one hierarchy at a time; a v1 mount that lists it is the binding one.
            on_v1 = _best([m for m in mounts if m.version == 1 and controller in m.controllers])
            if mount := on_v1 or unified:
                by_controller[controller] = mount
        return cls(by_controller, unified, os.path.isdir(booted))

    @property
    def mode(self) -> Mode:
        if not any(m.version == 1 for m in self.by_controller.values()):
            return "v2" if self.unified else "v1"
        return "hybrid" if self.unified else "v1"

    @property
    def recursive_protection(self) -> bool:
        return self.unified is not None and self.unified.recursive_protection

    def mount(self, controller: str) -> Mount | None:
        if controller == UNIFIED or (controller == FREEZER and FREEZER not in self.by_controller):
            return self.unified
        return self.by_controller.get(controller)

    def version(self, controller: str) -> Literal[1, 2] | None:
        mount = self.mount(controller)
        return mount.version if mount else None

    def available(self) -> Mapping[str, Literal[1, 2]]:
        """Every mounted controller and the cgroup version that carries it."""
        return {c: m.version for c, m in self.by_controller.items()}

    def in_use(self) -> dict[str, Mount]:
        """The distinct hierarchies that a workload must be in, each by the first controller that names it."""
        distinct: dict[str, Mount] = {}
        for name in IN_USE if self.tracked else (*IN_USE, UNIFIED):
            mount = self.mount(name)
            if name == FREEZER and mount is self.unified:
                continue  # it alone is no reason to be in the cgroup2 tree
            if mount and mount.path not in {m.path for m in distinct.values()}:
                distinct[name] = mount
        return distinct

    def directory(self, controller: str, path: str) -> str:
        """The directory of cgroup `path` (relative to the root; "" is the root) in the controller's hierarchy.

        Raises Denied for a path that could leave the mount, Unsupported where the controller is not mounted.
        """
        mount = self.mount(controller)
        if mount is None:
            raise Unsupported(f"the {controller} controller", needs=f"a cgroup hierarchy with {controller} mounted")
        inside(path)
        return f"{mount.path}/{path}" if path else mount.path

    def file(self, controller: str, path: str, name: str) -> str:
        """One interface file; same errors as `directory`."""
        if "/" in name:
            raise Denied(f"{name!r} is no cgroup file name")
        inside(name)
        return f"{self.directory(controller, path)}/{name}"


def inside(path: str) -> str:
    """The path itself when it cannot leave the directory it is joined to; Denied otherwise.

    cgroupfs holds no symbolic links, so the words of a path decide; whoever opens the file adds O_NOFOLLOW.
    """
    if path and (path.startswith("/") or "\0" in path or "\n" in path):
        raise Denied(f"{path!r} is no path below a cgroup root")
    if path and any(step in ("", ".", "..") for step in path.split("/")):
        raise Denied(f"{path!r} could leave the cgroup root")
    return path


def _mounts(text: str) -> Iterator[Mount]:
    """Only blanks and line feeds divide: those the kernel escapes in a path, and little else that `split` knows."""
    for line in text.split("\n"):
        before, dash, after = line.partition(" - ")
        fields, (kind, *rest) = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or kind not in ("cgroup", "cgroup2"):
            continue
        options = frozenset(rest[-1].split(",")) if rest else frozenset()
        path, writable = unescape(fields[4]), "ro" not in {*fields[5].split(","), *options}
        if kind == "cgroup2":
            recursive = "memory_recursiveprot" in options
            yield Mount(path, 2, _controllers(path), unescape(fields[3]), writable, recursive)
        elif named := options & _V1_CONTROLLERS:
            named = frozenset(IO if c == BLKIO else c for c in named)
            yield Mount(path, 1, named, unescape(fields[3]), writable)


def _controllers(mount: str) -> frozenset[str]:
    try:
        return frozenset(Path(mount, "cgroup.controllers").read_text().split())
    except OSError:  # mounted in another namespace, or a text that describes another machine
        return frozenset()


def _best(candidates: list[Mount]) -> Mount | None:
    """The mount that shows most: the whole hierarchy before a part of it, writable before read-only."""
    return min(candidates, key=lambda m: (m.root != "/", not m.writable, len(m.path)), default=None)


def unescape(field: str) -> str:
    return _OCTAL.sub(lambda m: chr(int(m[1], 8)), field)
