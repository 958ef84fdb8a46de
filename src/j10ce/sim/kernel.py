"""A kernel in memory: back end and tree over fake cgroups, with the refusals of the real ones and faults on demand.

kernel = FakeKernel("v1")
kernel.make(group("j10ce"), Handle("j10ce"))
kernel.fail("EBUSY")            # the next change is refused
kernel.vanish("j10ce")          # what someone else may do at any instant
"""

from __future__ import annotations

import errno
import math
import os
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from j10ce.kernel.slow import SlowWrites, Write
from j10ce.model import knob
from j10ce.model.knob import CGROUP_KNOBS, KNOBS, ROOT, Deed, Setting, Support, TargetId, Unit, Value
from j10ce.model.plan import Action, Applied, Change, Enable, Gone, Join, Make, Refused, Remove, ValueChange
from j10ce.model.workload import APART, Handle, plain_path
from j10ce.sim.cgroups import Cgroup, FakeCgroups, Version, parent
from j10ce.sim.pages import Pages

Answer = Applied | Refused | Gone
DONE = Applied(1.0)  # of a structural change


class FakeKernel:
    """`Backend`, `Tree` and `Disables` in one. It has every knob of the table, less `lacking` and what v1 never had."""

    name = "plain"

    def __init__(
        self,
        version: Version = "v2",
        *,
        cpus: int = 4,
        page: int = 4096,
        top: str = "j10ce",
        lacking: tuple[str, ...] = (),
        memory: float = 0.0,
    ) -> None:
        """`memory`: bytes of which a reclaim takes some; without any there is nothing to reclaim."""
        self.cgroups = FakeCgroups(version, cpus, page, lacking)
        self.top = top
        self.places: dict[TargetId, Handle] = {ROOT: Handle("")}
        self.faults: deque[str] = deque()
        self.pages = Pages(self.cgroups, memory)
        self._reclaims = memory > 0 and version == "v2"

    def __getitem__(self, path: str) -> Cgroup:
        return self.cgroups.by_path[path]

    # ------------------------------------------------------------------ what else happens on a machine

    def fail(self, *errors: str) -> None:
        """Refuse the next changes with these errno names, one each; `gone`: its cgroup vanishes first."""
        self.faults.extend(errors)

    def vanish(self, path: str) -> None:
        """Someone else removes a cgroup and all below it."""
        self.cgroups.vanish(path)

    def adopt(self, target: TargetId, path: str, values: Mapping[str, Value] | None = None) -> None:
        """A cgroup that was there before us."""
        self.cgroups.make(path)
        self[path].values.update(values or {})
        self.know(target, Handle(path))

    def perform(self, change: Change) -> Answer:
        """One change of a plan, as the facade makes it."""
        match change:
            case ValueChange(setting=setting, new=new):
                at = self.places.get(setting.target)
                return self.write(setting, new, at) if at else Gone()
            case Make(target=target, path=path):
                return self.make(target, Handle(path))
            case Enable(target=target, controllers=controllers):
                return self.enable(target, controllers)
            case Join(target=target, pid=pid):
                return self.join(target, pid)
            case Remove(target=target):
                return self.remove(target)

    def settings(self) -> dict[Setting, Value]:
        """Every setting of every known target that can be read."""
        every = (Setting(target, name) for target in self.places for name in CGROUP_KNOBS)
        return {s: v for s in every if (v := self.read(s, self.places[s.target])) is not None}

    # ------------------------------------------------------------------ Backend

    def knobs(self) -> Mapping[str, Support]:
        return {name: self.cgroups.support(name) for name in CGROUP_KNOBS}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return self.cgroups.rounded(s.knob, v)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        return self.cgroups.value(s.knob, at.path) if self.cgroups.has(s.knob, at.path) else None

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        what = f"write {s.knob} = {knob.render(s.knob, v)}"
        if (fault := self._fault(what, at.path)) is not None:
            return fault
        if at.path not in self.cgroups.by_path:
            return Gone()
        if not self.cgroups.has(s.knob, at.path):
            return refused(what, at.path, "ENOENT", "no such file")
        value = self.quantise(s, v)
        saved = {path: dict(here.values) for path, here in self.cgroups.by_path.items()}
        for companion in self.cgroups.companions(s.knob, value, at.path):
            self.cgroups.hold(*companion)
        if objection := self.cgroups.objection(s.knob, value, at.path):
            for path, values in saved.items():
                self[path].values = values
            return refused(what, at.path, *objection)
        self.cgroups.hold(s.knob, value, at.path)
        return Applied(self.cgroups.value(s.knob, at.path))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        value = self.read(s, at)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, frozenset):
            return knob.format_cpus(value)
        return "max" if value == math.inf else repr(value)

    def restore(self, s: Setting, text: str, at: Handle, /) -> Answer:
        is_set = s.knob in KNOBS and KNOBS[s.knob].unit is Unit.SET
        return self.write(s, knob.parse_cpus(text) if is_set else float(text.replace("max", "inf")), at)

    def beside(self, s: Setting, at: Handle, /) -> float:
        tops = (p for p in self.cgroups.by_path if p and "/" not in p and p != at.path)
        return math.fsum(float(v) for p in tops if isinstance(v := self.cgroups.value(s.knob, p), float | int))

    # ------------------------------------------------------------------ Acts

    def deeds(self) -> Mapping[Deed, Support]:
        known = Support(True, via="cgroup2") if self._reclaims else Support(False, needs="simulated pages")
        return {Deed.RECLAIM: known}

    def act(self, action: Action, at: Handle, /) -> Answer:
        if not self._reclaims or at.path not in self.cgroups.by_path:
            return Gone()
        return Applied(self.pages.reclaim(at.path, action.amount))

    # ------------------------------------------------------------------ Tree

    def place(self, target: TargetId, /) -> Handle | None:
        if target.startswith("group/"):
            return self.places.get(target) or Handle(target.removeprefix("group/"))
        return self.places.get(target)

    def path_for(self, tier: str, namespace: str, name: str, /) -> Handle:
        leaf = f"{namespace}_{name}" if name else ""
        return Handle(plain_path(self.top, tier, leaf))

    def know(self, target: TargetId, at: Handle, /) -> None:
        self.places[target] = at

    def owns(self, at: Handle, /) -> bool:
        return f"{at.path}/".startswith((f"{self.top}/", f"{plain_path(self.top, APART)}/"))

    def identity(self, at: Handle, controller: str, /) -> int | None:
        here = self.cgroups.by_path.get(at.path_of(controller))
        return here.identity if here else None

    def make(self, target: TargetId, at: Handle, /) -> Answer:
        if (fault := self._fault("make", at.path)) is not None:
            return fault
        if parent(at.path) not in self.cgroups.by_path:
            return refused("make", at.path, "ENOENT", "no such parent")
        self.cgroups.make(at.path)
        self.know(target, at)
        return DONE

    def enable(self, target: TargetId, controllers: frozenset[str], /) -> Answer:
        here = self._at(target, what := "enable " + " ".join(sorted(controllers)))
        if not isinstance(here, Cgroup):
            return here
        path = self.places[target].path
        if path and self.cgroups.version == "v2":
            if not controllers <= self[parent(path)].enabled:
                return refused(what, path, "ENOENT", "not enabled in the parent")
            if here.pids:
                return refused(what, path, "EBUSY", "processes sit in it")
        here.enabled |= controllers
        return DONE

    def join(self, target: TargetId, pid: int, /) -> Answer:
        here = self._at(target, what := f"move {pid}")
        if not isinstance(here, Cgroup):
            return here
        path = self.places[target].path
        if self.cgroups.version == "v2" and path and here.enabled:
            return refused(what, path, "EBUSY", "its children have controllers")
        if self.cgroups.version == "v1" and not here.values.get("cpuset.cpus"):
            return refused(what, path, "ENOSPC", "cpuset.cpus is empty")
        for other in self.cgroups.by_path.values():
            other.pids.discard(pid)
        here.pids.add(pid)
        return DONE

    def remove(self, target: TargetId, /) -> Answer:
        here = self._at(target, "remove")
        if not isinstance(here, Cgroup):
            return here
        path = self.places[target].path
        if here.pids or any(self.cgroups.children(path)):
            return refused("remove", path, "EBUSY", "it is not empty")
        self.cgroups.vanish(path)
        del self.places[target]
        return DONE

    def enabled(self, target: TargetId, /) -> frozenset[str] | None:
        at = self.places.get(target)
        return self[at.path].enabled if at and at.path in self.cgroups.by_path else None

    def disable(self, target: TargetId, controllers: frozenset[str], /) -> Answer:
        here = self._at(target, what := "disable " + " ".join(sorted(controllers)))
        if not isinstance(here, Cgroup):
            return here
        path = self.places[target].path
        if any(self[child].enabled & controllers for child in self.cgroups.children(path)):
            return refused(what, path, "EBUSY", "a child has them enabled")
        here.enabled -= controllers
        return DONE

    # ------------------------------------------------------------------ faults

    def _at(self, target: TargetId, what: str) -> Cgroup | Refused | Gone:
        at = self.places.get(target)
        if at is None:
            return Gone()
        fault = self._fault(what, at.path)
        return self.cgroups.by_path.get(at.path, Gone()) if fault is None else fault

    def _fault(self, what: str, path: str) -> Refused | Gone | None:
        if not self.faults:
            return None
        error = self.faults.popleft()
        if error == "gone":
            self.vanish(path)
            return Gone()
        return refused(what, path, error, os.strerror(getattr(errno, error)))


class AtOnce(SlowWrites):
    """Nothing is slow here: a write has come back when it was made."""

    def _put(self, item: ValueChange | Action, write: Write) -> None:
        self._done.put((item, write()))


def refused(what: str, path: str, error: str, hint: str) -> Refused:
    return Refused(f"cannot {what} in {path or '/'}: kernel said {error}; {hint}")


if TYPE_CHECKING:
    from j10ce.kernel.backend import Acts, Backend, Disables, Surveys, Tree

    _backend: Backend = FakeKernel()
    _tree: Tree = FakeKernel()
    _disables: Disables = FakeKernel()
    _surveys: Surveys = FakeKernel()
    _acts: Acts = FakeKernel()
