"""`realtime`: who runs before all fair threads, how much, and what cgroup v1 wants for it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.control.controller import Controller
from j10ce.control.cpu.realtime import Realtime
from j10ce.model.kinds import CpuSection
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Ceiling
from j10ce.testing import build

FIRST = CpuSection(latency="realtime")


def machine(lacking: tuple[str, ...] = ("cpu.rt_runtime_us",), **floors: int) -> Snapshot:
    """Workloads by name, each with a floor in millicores; four CPUs."""
    workloads = [build.workload(name) for name in floors]
    given = [build.entitlement(w, tier="reserved", cpu=FIRST, floor_cpu=f"{floors[w.name]}m") for w in workloads]
    return build.snapshot(*given, workloads=workloads, lacking=lacking)


def proposals(snap: Snapshot, controller: Controller | None = None) -> dict[str, Proposal]:
    asked = (controller or Realtime(Realtime.Config())).propose(snap)
    return {f"{p.setting.target} {p.setting.knob}": p for p in asked}


def values(snap: Snapshot, controller: Controller | None = None) -> dict[str, Any]:
    return {name.split("/")[-1]: p.value for name, p in proposals(snap, controller).items()}


def test_a_floor_is_real_time() -> None:
    assert values(machine(web=1400)) == {"web sched.realtime": 140_000.0}


@pytest.mark.parametrize("snap", [machine(web=0), machine(("sched.realtime",), web=1000)], ids=["no floor", "no way"])
def test_otherwise_nothing_is(snap: Snapshot) -> None:
    assert values(snap) == {}


def test_a_limit_below_the_floor_counts() -> None:
    w = build.workload("web")
    e = replace(build.entitlement(w, tier="reserved", cpu=FIRST, floor_cpu=1), ceiling=Ceiling(cpu=500.0))
    snap = build.snapshot(e, workloads=[w], lacking=["cpu.rt_runtime_us"])
    assert values(snap) == {"web sched.realtime": 50_000.0}


def test_more_than_three_quarters_of_the_cpus_is_refused_with_numbers() -> None:
    cpus = len(machine(web=1).node.cpus)
    most = 750 * cpus
    assert values(machine(a=most)) == {"a sched.realtime": most * 100.0}
    refused = proposals(machine(a=most, b=100))["workload/default/b sched.realtime"]
    assert refused.value == 0.0
    assert f"75 % of {cpus}" in refused.reason
    assert "0.1 CPUs" in refused.reason


def test_who_came_first_stays() -> None:
    controller = Realtime(Realtime.Config())
    cpus = len(machine(web=1).node.cpus)
    assert values(machine(b=700 * cpus), controller)["b sched.realtime"] > 0
    both = values(machine(a=700 * cpus, b=700 * cpus), controller)
    assert (both["a sched.realtime"], both["b sched.realtime"] > 0) == (0.0, True)


def test_groups_of_v1_have_budgets_that_cover_what_is_inside() -> None:
    budgets = {n: p.value for n, p in proposals(machine((), web=500, db=2000)).items() if n.endswith("rt_runtime_us")}
    web, db = (budgets[f"workload/default/{name} cpu.rt_runtime_us"] for name in ("web", "db"))
    assert (web, db) == (300_000.0, 600_000.0)
    assert {value for name, value in budgets.items() if name.startswith("group/")} == {900_000.0}
    assert "group/ cpu.rt_runtime_us" not in budgets
