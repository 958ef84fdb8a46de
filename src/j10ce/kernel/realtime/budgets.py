"""Budgets of real-time on cgroup v1: microseconds of each second, on every CPU. A parent has at least the sum of its
children, and a group with real-time threads in it cannot go down to 0."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file
from j10ce.kernel.backend import Backend
from j10ce.kernel.realtime.nets import BUDGET, budgets
from j10ce.model.knob import Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

PERIOD: Final = "cpu.rt_period_us"
PERIOD_US: Final = 1_000_000
TRIES: Final = 4  # a child that was removed a moment ago holds its budget for some 20 ms
PAUSE_S: Final = 0.01


class RealtimeBudgets:
    def __init__(self, hierarchies: Hierarchies) -> None:
        self._hierarchies = hierarchies
        self._support = {BUDGET: budgets(hierarchies)}

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return float(round(v)) if isinstance(v, float | int) else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        """As of a period of one second."""
        held, period = file.read(self._file(at, BUDGET)), file.read(self._file(at, PERIOD))
        return None if not held or not period else float(round(int(held) * PERIOD_US / int(period)))

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if not isinstance(v, float | int):
            return Refused(f"{BUDGET} does not take {render(BUDGET, v)}")
        period = file.read(self._file(at, PERIOD))
        return self._write(s, str(round(v * int(period or PERIOD_US) / PERIOD_US)), at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        return file.read(self._file(at, BUDGET))

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        return self._write(s, text, at)

    def _write(self, s: Setting, text: str, at: Handle) -> Applied | Refused | Gone:
        problem = file.write(self._file(at, BUDGET), text)
        for _ in range(TRIES):
            if not isinstance(problem, Refused) or "EINVAL" not in problem.reason:
                break
            time.sleep(PAUSE_S)
            problem = file.write(self._file(at, BUDGET), text)
        if problem is not None:
            return problem
        held = self.read(s, at)
        return Gone() if held is None else Applied(held)

    def _file(self, at: Handle, name: str) -> str:
        return self._hierarchies.file("cpu", at.path_of("cpu"), name)


def _conforms(b: RealtimeBudgets) -> Backend:
    return b
