"""The cgroup tree as plain directories, in every hierarchy that is in use."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Final

from j10ce.errors import Denied, Finding, Invalid
from j10ce.host.mounts import UNIFIED, Hierarchies, Mount, inside
from j10ce.kernel import file
from j10ce.kernel.backend import Disables, Tree
from j10ce.kernel.process import Process, alive, immovable, pinned, process
from j10ce.model.knob import TargetId
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import APART, Handle, plain_path

_UNSAFE: Final = re.compile(r"^\.|[^A-Za-z0-9.-]")
_MAX_NAME: Final = 255


class PlainTree:
    """`<top>/<tier>/<namespace>_<name>`, and `<top>_besteffort` beside it; nothing else is ever made or removed."""

    name = "plain"

    def __init__(self, hierarchies: Hierarchies, top: str = "j10ce") -> None:
        self._hierarchies = hierarchies
        self._top = inside(top)
        self._known: dict[TargetId, Handle] = {}

    def place(self, target: TargetId, /) -> Handle | None:
        if target.startswith("group/"):
            return Handle(inside(target.removeprefix("group/")))
        return self._known.get(target)

    def path_for(self, tier: str, namespace: str, name: str, /) -> Handle:
        leaf = f"{escape(namespace)}_{escape(name)}" if tier and name else ""
        if len(leaf) > _MAX_NAME:
            problem = Finding("name", name, f"makes a cgroup name of {len(leaf)} bytes", f"at most {_MAX_NAME}")
            raise Invalid([problem], "workload")
        return Handle(plain_path(self._top, escape(tier) if tier else "", leaf))

    def know(self, target: TargetId, at: Handle, /) -> None:
        self._known[target] = at

    def owns(self, at: Handle, /) -> bool:
        return f"{at.path}/".startswith((f"{self._top}/", f"{plain_path(self._top, APART)}/"))

    def identity(self, at: Handle, controller: str, /) -> int | None:
        try:
            return os.stat(self._hierarchies.directory(controller, at.path_of(controller))).st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone:
        if not self.owns(at):
            return Refused(f"{at.path!r} is not below {self._top!r}; only our own cgroups are made")
        if (parent := at.path.rpartition("/")[0]) and not self._exists(Handle(parent)):
            return Refused(f"cannot make {at.path!r}: kernel said ENOENT; make {parent!r} first")
        for controller, mount in self._hierarchies.in_use().items():
            if problem := self._make_in(mount, inside(at.path_of(controller))):
                return problem
        self.know(target, at)
        return Applied(at.path)

    def enabled(self, target: TargetId, /) -> frozenset[str] | None:
        """v1 offers every controller everywhere; on cgroup2 the cgroup's own file says."""
        at = self.place(target)
        if at is None or self._hierarchies.unified is None:
            return None if at is None else self._on_v1()
        text = file.read(self._hierarchies.file(UNIFIED, at.path_of(UNIFIED), "cgroup.subtree_control"))
        return None if text is None else frozenset(text.split()) | self._on_v1()

    def enable(self, target: TargetId, controllers: frozenset[str], /) -> Applied | Refused | Gone:
        return self._switch(target, controllers, "+")

    def disable(self, target: TargetId, controllers: frozenset[str], /) -> Applied | Refused | Gone:
        return self._switch(target, controllers, "-")

    def join(self, target: TargetId, pid: int, /) -> Applied | Refused | Gone:
        at = self.place(target)
        if at is None:
            return Gone()
        if why := immovable(pid):
            return Refused(why)
        with pinned(pid) as handle:
            before = process(pid)
            if handle is None or before is None:
                return Gone()
            problem = self._move(before, {c: at.path_of(c) for c in self._hierarchies.in_use()})
            if not alive(handle):
                return Gone()
        return problem or Applied(float(pid))

    def remove(self, target: TargetId, /) -> Applied | Refused | Gone:
        at = self.place(target)
        if at is None:
            return Gone()
        if not self.owns(at):
            return Refused(f"{at.path!r} is not below {self._top!r}; only our own cgroups are removed")
        directories = [self._hierarchies.directory(c, at.path_of(c)) for c in self._hierarchies.in_use()]
        if inhabited := next((why for d in directories if (why := _inhabitants(d))), ""):
            return Refused(inhabited)
        results = [_rmdir(d) for d in directories]
        if refused := next((r for r in results if isinstance(r, Refused)), None):
            return refused
        self._known.pop(target, None)
        return Applied(at.path) if any(r is None for r in results) else Gone()

    def _move(self, before: Process, paths: Mapping[str, str]) -> Refused | Gone | None:
        """Into all hierarchies or none."""
        moved: list[str] = []
        for controller, path in paths.items():
            problem = file.write(self._hierarchies.file(controller, path, "cgroup.procs"), str(before.pid))
            if problem is not None:
                for c in moved:
                    file.write(self._hierarchies.file(c, before.path(c), "cgroup.procs"), str(before.pid))
                return problem
            moved.append(controller)
        return None

    def _make_in(self, mount: Mount, path: str) -> Refused | None:
        """With every missing step: a killed agent may have made the parent in one hierarchy only."""
        here = f"{mount.path}/{path}"
        try:
            os.mkdir(here, 0o755)
        except FileExistsError:
            if not os.path.isdir(here):
                return Refused(f"cannot make {here}: a kernel file has that name")
        except OSError as e:
            parent = path.rpartition("/")[0]
            if e.errno == errno.ENOENT and parent and not os.path.isdir(f"{mount.path}/{parent}"):
                return self._make_in(mount, parent) or self._make_in(mount, path)
            return Refused(f"cannot make {here}: kernel said {errno.errorcode.get(e.errno or 0, e.errno)}")
        return _inherit_cpuset(here) if mount.version == 1 and "cpuset" in mount.controllers else None

    def _switch(self, target: TargetId, controllers: frozenset[str], sign: str) -> Applied | Refused | Gone:
        at = self.place(target)
        if at is None or not self._exists(at):
            return Gone()
        unified = self._hierarchies.unified
        ours = sorted(controllers & unified.controllers) if unified else []
        if ours:
            words = " ".join(f"{sign}{c}" for c in ours)
            problem = file.write(self._hierarchies.file(UNIFIED, at.path_of(UNIFIED), "cgroup.subtree_control"), words)
            if problem is not None:
                return _explain_busy(problem)
        return Applied(" ".join(sorted(controllers)))

    def _exists(self, at: Handle) -> bool:
        return any(self.identity(at, c) is not None for c in self._hierarchies.in_use())

    def _on_v1(self) -> frozenset[str]:
        return frozenset(c for c, v in self._hierarchies.available().items() if v == 1)


def escape(name: str) -> str:
    """A name as one step of a path; different names stay different, and `_` stays free to separate."""
    if not name:
        raise Denied("an empty name has no cgroup")
    return _UNSAFE.sub(lambda m: "".join(f"%{byte:02x}" for byte in m[0].encode()), name)


def _inherit_cpuset(here: str) -> Refused | None:
    """A v1 cpuset is born empty and takes no process until it has CPUs and memory nodes."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if file.read(f"{here}/{name}") == "" and (text := file.read(f"{os.path.dirname(here)}/{name}")):
            problem = file.write(f"{here}/{name}", text)
            if isinstance(problem, Refused):
                return problem
    return None


def _inhabitants(directory: str) -> str:
    pids = (file.read(f"{directory}/cgroup.procs") or "").split()
    more = f" and {len(pids) - 1} more" if pids[1:] else ""
    return f"{directory} still holds process {pids[0]}{more}" if pids else ""


def _rmdir(directory: str) -> Refused | Gone | None:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return Gone()
    except OSError as e:
        name = errno.errorcode.get(e.errno or 0, e.errno)
        return Refused(f"cannot remove {directory}: kernel said {name}; something is still in it")
    return None


def _explain_busy(problem: Refused | Gone) -> Refused | Gone:
    if isinstance(problem, Refused) and "EBUSY" in problem.reason:
        return Refused(f"{problem.reason}; a cgroup with processes of its own cannot give controllers to children")
    return problem


def _conforms(t: PlainTree) -> tuple[Tree, Disables]:
    return t, t
