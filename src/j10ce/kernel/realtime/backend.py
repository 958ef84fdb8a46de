"""The back end of `sched.realtime`: how much CPU time a workload has before all fair threads, in µs of each 100 ms.

The keeper does it; what is journalled is only that it is done. The way back needs no list: whatever thread of the
workload has our policy is given back the ordinary one, and its nice value is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file
from j10ce.kernel.backend import Backend, Tends
from j10ce.kernel.realtime.budgets import PERIOD
from j10ce.kernel.realtime.law import SHARE
from j10ce.kernel.realtime.machine import Linux, WardPlace, is_ours
from j10ce.kernel.realtime.nets import BUDGET, budgets, support
from j10ce.kernel.realtime.watch import RealtimeWatch
from j10ce.kernel.tasks.roll import Roll
from j10ce.model.knob import PERIOD_US, Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

KNOB: Final = "sched.realtime"


class GivenRate(NamedTuple):
    identity: int
    value: float


class RealtimeBackend:
    def __init__(self, hierarchies: Hierarchies, watch: RealtimeWatch | None = None) -> None:
        self._hierarchies = hierarchies
        self._roll = Roll(hierarchies)
        self._budgets = budgets(hierarchies).ok
        root = [hierarchies.file("cpu", "", "tasks")] if self._budgets else []
        self.watch = watch or RealtimeWatch(root)
        self._support = {KNOB: support(hierarchies)}
        self._given: dict[str, GivenRate] = {}

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return float(round(v)) if isinstance(v, float | int) else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        identity, given = self._roll.identity(at), self._given.get(self._roll.directory(at))
        if identity is None:
            return None
        return given.value if given and given.identity == identity else 0.0

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if not isinstance(v, float | int):
            return Refused(f"{s.knob} does not take {render(s.knob, v)}")
        identity, key = self._roll.identity(at), self._roll.directory(at)
        if identity is None:
            return Gone()
        if not v:
            return self._end(key, at)
        if key not in self._given and (marked := self._marked(at)):
            return Refused(f"{marked} of its threads have SCHED_RR of priority 1 themselves, as ours would have")
        self._given[key] = GivenRate(identity, float(round(v)))
        self._keep(key, at)
        return Applied(float(round(v)))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        held = self.read(s, at)
        return None if held is None else f"{held:.0f}"

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        return self._end(self._roll.directory(at), at) if text == "0" else self.write(s, float(text), at)

    def tend(self, s: Setting, v: Value, at: Handle, /) -> Refused | Gone | None:
        key = self._roll.directory(at)
        given = self._given.get(key)
        if given is None or given.value != v:
            return None
        if given.identity != self._roll.identity(at):
            del self._given[key]
            self.watch.drop(key, self._place(at))
            return Gone()
        refused = self._keep(key, at)
        return Refused(f"its threads cannot be real-time: the kernel said {refused}{self._hint()}") if refused else None

    def recall(self, s: Setting, v: Value, at: Handle, /) -> None:
        identity = self._roll.identity(at)
        if identity is not None and isinstance(v, float | int) and v:
            self._given[self._roll.directory(at)] = GivenRate(identity, float(v))

    def _keep(self, key: str, at: Handle) -> str:
        return self.watch.keep(key, self._place(at), self._given[key].value / PERIOD_US, self._share(at))

    def _end(self, key: str, at: Handle) -> Applied | Gone:
        self._given.pop(key, None)
        self.watch.drop(key, self._place(at))
        return Gone() if self._roll.identity(at) is None else Applied(0.0)

    def _marked(self, at: Handle) -> int:
        linux = Linux()
        return sum(is_ours(linux, thread) for thread in linux.threads(self._place(at)) or ())

    def _share(self, at: Handle) -> float:
        """Of a CPU, what the kernel would throttle beyond."""
        if not self._budgets:
            return SHARE
        path = at.path_of("cpu")
        held, period = (file.read(self._hierarchies.file("cpu", path, name)) for name in (BUDGET, PERIOD))
        return min(SHARE, int(held) / int(period)) if held and period else SHARE

    def _place(self, at: Handle) -> WardPlace:
        top = self._roll.directory(at)
        if self._hierarchies.version("cpu") == 2:
            return WardPlace(top, "cgroup.threads", f"{top}/cpu.stat")
        counter = self._hierarchies.file("cpuacct", at.path_of("cpuacct"), "cpuacct.usage")
        return WardPlace(top, "tasks", counter, f"{counter}_percpu")

    def _hint(self) -> str:
        return f"; {BUDGET} has nothing left for it" if self._budgets else "; it needs rt_group_sched=0"


def _conforms(b: RealtimeBackend) -> tuple[Backend, Tends]:
    return b, b
