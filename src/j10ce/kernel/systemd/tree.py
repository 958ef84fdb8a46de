"""The cgroup tree where systemd owns it: slices for top and tiers, one scope per workload."""

from __future__ import annotations

import os
import zlib

from j10ce.host.mounts import UNIFIED, Hierarchies, inside
from j10ce.kernel import file
from j10ce.kernel.backend import Backend, Tree
from j10ce.kernel.process import alive, immovable, pinned
from j10ce.kernel.systemd.dbus import CallFailed, Typed
from j10ce.kernel.systemd.disks import ACCOUNTING
from j10ce.kernel.systemd.properties import Nursery
from j10ce.kernel.systemd.spelling import TABLE, properties
from j10ce.kernel.systemd.units import GONE, UNSET, Units, answer, scope_name, slice_name
from j10ce.model.knob import TargetId
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import APART, Handle

Answer = Applied | Refused | Gone


class SystemdTree:
    """`<top>.slice/<top>-<tier>.slice/<top>-<namespace>-<name>.scope`, and `<top>_besteffort.slice` beside it.

    All of it is transient: nothing stays on disk.

    `backend`, and of disks `disks`, take the values of a scope that systemd has no property for, once there is a cgroup
    to hold them.
    """

    def __init__(
        self,
        units: Units,
        hierarchies: Hierarchies,
        nursery: Nursery,
        backend: Backend,
        disks: Backend,
        top: str = "j10ce",
    ) -> None:
        self.name = "systemd-user" if units.user else "systemd"
        self._units = units
        self._hierarchies = hierarchies
        self._nursery = nursery
        self._backend = backend
        self._disks = disks
        self._top = top
        self._known: dict[TargetId, Handle] = {}

    def place(self, target: TargetId, /) -> Handle | None:
        if target.startswith("group/"):
            path = inside(target.removeprefix("group/"))
            return Handle(path, self._units.unit_at(path))
        return self._known.get(target)

    def path_for(self, tier: str, namespace: str, name: str, /) -> Handle:
        # By systemd's rule a dash nests slices, so the tier that stands beside our top has none in its name.
        steps = [slice_name(f"{self._top}_{tier}" if tier == APART else self._top)]
        if tier and tier != APART:
            steps.append(slice_name(self._top, tier))
        if tier and name:
            steps.append(scope_name(self._top, namespace, name))
        return Handle("/".join(filter(None, (self._units.root, *steps))), steps[-1])

    def know(self, target: TargetId, at: Handle, /) -> None:
        self._known[target] = at

    def owns(self, at: Handle, /) -> bool:
        return f"{at.path}/".startswith(tuple(f"{self.path_for(tier, '', '').path}/" for tier in ("", APART)))

    def identity(self, at: Handle, _: str, /) -> int | None:
        """A unit is its name: systemd keeps values by name, over restarts, and gives ours always the same defaults."""
        unit = self._units.unit_at(at.path)
        # A service that someone stopped may still have values of ours for its next start.
        if unit and (not self.owns(at) or unit in self._nursery or self._exists(at)):
            return zlib.crc32(unit.encode())
        try:
            return os.stat(self._directory(at)).st_ino
        except FileNotFoundError:
            return None

    def make(self, target: TargetId, at: Handle, /) -> Answer:
        unit = self._units.unit_at(at.path)
        if not unit or not self.owns(at):
            return Refused(f"{at.path!r} is no unit below {slice_name(self._top)}; only our own are made")
        absent = not self._exists(at)
        if absent and unit.endswith(".scope"):
            self._nursery.add(unit)  # its first process starts it
        elif absent:
            try:
                self._units.start(unit, {"Description": Typed("s", f"j10ce-qos {unit.removesuffix('.slice')}")})
            except CallFailed as e:
                return answer(e, f"make {unit}")
        self.know(target, at)
        return Applied(at.path)

    def enable(self, target: TargetId, controllers: frozenset[str], /) -> Answer:
        """systemd enables by itself what the properties of units need, and takes it back."""
        return Applied(" ".join(sorted(controllers))) if self.place(target) else Gone()

    def join(self, target: TargetId, pid: int, /) -> Answer:
        at = self.place(target)
        unit = self._units.unit_at(at.path) if at else ""
        if at is None or not unit:
            return Gone()
        if why := immovable(pid):
            return Refused(why)
        with pinned(pid) as handle, self._nursery.lock:
            if handle is None:
                return Gone()
            try:
                self._start(unit, at, pid) if unit in self._nursery else self._units.attach(unit, pid)
            except CallFailed as e:
                return answer(e, f"move {pid} to {unit}") if alive(handle) else Gone()
        return Applied(float(pid))

    def remove(self, target: TargetId, /) -> Answer:
        at = self.place(target)
        if at is None:
            return Gone()
        unit = self._units.unit_at(at.path)
        if not unit or not self.owns(at):
            return Refused(f"{at.path!r} is no unit below {slice_name(self._top)}; only our own are removed")
        if "populated 1" in (file.read(f"{self._directory(at)}/cgroup.events") or ""):
            return Refused(f"{unit} still holds processes; stopping it would end them")
        never_started = self._nursery.discard(unit)
        try:
            self._units.stop(unit)
        except CallFailed as e:
            if e.error not in GONE:
                return answer(e, f"remove {unit}")
            self._known.pop(target, None)
            return Applied(at.path) if never_started else Gone()
        self._known.pop(target, None)
        return Applied(at.path)

    def _start(self, unit: str, at: Handle, pid: int) -> None:
        """One call makes the scope, moves the process in and sets every property: nothing runs unprotected."""
        values = dict(self._nursery.values(unit) or {})
        own = {
            "PIDs": Typed("au", [pid]),
            "Slice": Typed("s", at.path.split("/")[-2]),
            "Description": Typed("s", f"j10ce-qos {unit.removesuffix('.scope')}"),
            # Further processes may be attached to a delegated unit only; no controller is asked for by it.
            "DelegateControllers": Typed("as", []),
            "CollectMode": Typed("s", "inactive-or-failed"),
            "TasksMax": Typed("t", UNSET),  # systemd's default would be a limit that nobody declared
        }
        of_disks = self._disks.knobs().keys()
        if any(setting.knob in of_disks for setting in values):
            own[ACCOUNTING] = Typed("b", True)
        self._units.start(unit, own | properties(values))
        self._nursery.discard(unit)
        for setting, value in values.items():
            if setting.knob not in TABLE:
                backend = self._disks if setting.knob in of_disks else self._backend
                backend.write(setting, value, at)  # one that is refused shows as drift at the next sweep

    def _exists(self, at: Handle) -> bool:
        return os.path.isdir(self._directory(at))

    def _directory(self, at: Handle) -> str:
        return self._hierarchies.directory(UNIFIED, at.path)


_: type[Tree] = SystemdTree
