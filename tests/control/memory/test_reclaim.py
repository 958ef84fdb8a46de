"""`memory-reclaim`: cold memory goes, hot memory stays, and nobody is asked for what it was promised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.memory.reclaim import AT_ONCE, MemoryReclaim
from j10ce.model.kinds import MemorySection, ReclaimSection
from j10ce.model.knob import Deed, Support
from j10ce.model.plan import Action
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement
from j10ce.testing import build

MI = float(1 << 20)
ON = MemorySection(reclaim=ReclaimSection(enabled=True))
RECLAIM = {"reclaim": Support(True, via="cgroup2")}


class Machine:
    """Workloads with so much memory in use, of which so much is touched all the time."""

    def __init__(self, used: float, hot: float, memory: MemorySection = ON, **entitled: Any) -> None:
        limit = entitled.pop("limit", None)
        self.lacking, self.having = entitled.pop("lacking", ()), entitled.pop("having", ())
        self.web = build.workload("web", memory_limit=limit)
        self.entitled: Entitlement = build.entitlement(self.web, memory=memory, **entitled)
        self.used, self.hot, self.cache = used, hot, 0.0
        self.now, self.pressure, self.refaulted = 1000.0, 0.0, 0.0
        self.controller = MemoryReclaim(MemoryReclaim.Config())
        self.deeds: list[Action] = []

    def snapshot(self, pressure: float | None = 0.0) -> Snapshot:
        readings = {
            (self.web.target, "memory.current"): self.used,
            (self.web.target, "memory.refaults"): self.refaulted / 4096,
            (self.web.target, "memory.file"): self.cache,
        }
        if pressure is not None:
            readings[self.web.target, "memory.pressure"] = pressure
        snap = build.snapshot(self.entitled, workloads=[self.web], now=self.now, readings=readings, having=self.having)
        return replace(snap, support={**snap.support, **({} if "reclaim" in self.lacking else RECLAIM)})

    def run(self, seconds: int, pressure: float | None = 0.0) -> list[Action]:
        """What was asked for; what is taken of the hot is read back within a second."""
        asked: list[Action] = []
        for _ in range(seconds):
            acts = [*self.controller.act(self.snapshot(pressure))]
            self.refaulted = 0.0
            for action in acts:
                self.used -= action.amount
                back = max(0.0, self.hot - self.used)
                self.used, self.refaulted = self.used + back, back / 4
            asked += acts
            self.now += 1.0
        self.deeds += asked
        return asked


def test_half_of_what_is_cold_is_gone_within_a_minute() -> None:
    machine = Machine(1000 * MI, hot=0)
    deeds = machine.run(60)
    assert machine.used <= 500 * MI
    assert deeds[0].reason == "1% of the 1000Mi in use; stalled 0.00% of the time, 0/s read back"
    assert {(a.deed, a.owner) for a in deeds} == {(Deed.RECLAIM, "memory-reclaim")}


def test_what_is_hot_is_asked_for_a_hundredth_of_it_less_and_less_often() -> None:
    machine = Machine(1000 * MI, hot=1000 * MI)
    deeds = machine.run(600)
    assert all(a.amount <= 10 * MI for a in deeds)
    assert len(deeds) <= 8


def test_of_something_half_cold_the_hot_half_stays() -> None:
    machine = Machine(1000 * MI, hot=500 * MI)
    machine.run(300)
    assert 500 * MI <= machine.used <= 600 * MI


@pytest.mark.parametrize(
    ("machine", "pressure"),
    [
        pytest.param(Machine(1000 * MI, 0, MemorySection()), 0.0, id="nobody asked for it"),
        pytest.param(Machine(1000 * MI, 0, tier="system"), 0.0, id="tier system"),
        pytest.param(Machine(1000 * MI, 0, chosen=False), 0.0, id="only classified"),
        pytest.param(Machine(1000 * MI, 0, lacking=["reclaim"]), 0.0, id="the kernel has no memory.reclaim"),
        pytest.param(Machine(1000 * MI, 0, floor_memory="1000Mi"), 0.0, id="all of it was promised"),
        pytest.param(Machine(100 * 1024, 0), 0.0, id="too little to tell anything"),
        pytest.param(Machine(1000 * MI, 0), 0.01, id="stalled 1 % of the time"),
    ],
)
def test_nothing_is_asked_back_where(machine: Machine, pressure: float) -> None:
    assert machine.run(60, pressure) == []


def test_a_kernel_without_psi_is_steered_by_refaults_alone() -> None:
    cold, hot = Machine(1000 * MI, hot=0), Machine(1000 * MI, hot=1000 * MI)
    cold.run(60, pressure=None)
    hot.run(60, pressure=None)
    assert cold.used <= 500 * MI
    assert hot.used >= 980 * MI


def test_more_pressure_is_borne_where_the_profile_says_so() -> None:
    patient = Machine(1000 * MI, 0, MemorySection(reclaim=ReclaimSection(enabled=True, target_pressure=2.0)))
    assert patient.run(10, pressure=0.01)


def test_a_floor_is_left_whole() -> None:
    machine = Machine(1000 * MI, hot=0, floor_memory="600Mi")
    machine.run(600)
    assert machine.used >= 600 * MI


def test_of_something_small_the_smallest_step_that_tells_something_is_taken() -> None:
    machine = Machine(12 * MI, hot=0)
    assert machine.run(2)[0].amount == MI / 4


MARKED = MemorySection(watermark_percent=90)


def test_above_a_watermark_memory_is_taken_back_to_a_little_below_it_and_then_left() -> None:
    machine = Machine(980 * MI, 0, MARKED, limit="1000Mi")
    first = machine.run(2)
    assert "above the mark of 900Mi" in first[0].reason
    machine.run(60)
    assert machine.used == pytest.approx(880 * MI, abs=MI)
    assert machine.run(60) == []


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(Machine(980 * MI, 0, MARKED), id="without a limit there is no mark"),
        pytest.param(
            Machine(980 * MI, 0, MARKED, limit="1000Mi", having=["memory.wmark_ratio"]), id="the kernel's own does it"
        ),
        pytest.param(Machine(980 * MI, 0, MemorySection(watermark_percent=0), limit="1000Mi"), id="0 is never"),
    ],
)
def test_a_watermark_is_not_ours_to_keep(machine: Machine) -> None:
    assert machine.run(20) == []


@pytest.mark.parametrize(
    ("said", "amount"),
    [
        pytest.param("30%", 200, id="percent of the limit"),
        pytest.param("100Mi", 400, id="bytes"),
        pytest.param("0", None, id="0 is no limit"),
        pytest.param("50%", None, id="not reached"),
    ],
)
def test_page_cache_above_its_limit_is_taken_back_and_nothing_else(said: str, amount: float | None) -> None:
    machine = Machine(900 * MI, 0, MemorySection(page_cache_limit=Quantity.parse(said)), limit="1000Mi")
    machine.cache = 500 * MI
    deeds = machine.run(2)
    assert [(a.amount / MI, a.only) for a in deeds] == ([(amount, "file")] if amount else [])


def test_a_kernel_that_limits_page_cache_itself_is_left_to_do_it() -> None:
    limited = MemorySection(page_cache_limit=Quantity.parse("10%"))
    machine = Machine(900 * MI, 0, limited, limit="1000Mi", having=["memory.pagecache_limit.size"])
    machine.cache = 500 * MI
    assert machine.run(10) == []


def test_of_many_that_are_due_a_few_have_their_turn_and_nobody_waits_for_ever() -> None:
    many = [build.workload(f"w{n:02}") for n in range(6 * AT_ONCE)]
    entitled = [build.entitlement(w, memory=ON) for w in many]
    used = {w.target: (n + 1) * 100 * MI for n, w in enumerate(many)}
    controller, served = MemoryReclaim(MemoryReclaim.Config()), dict.fromkeys(used, 0)
    for second in range(60):
        measured = [t for t in used if t != many[0].target]  # one has no counters at all
        readings = {(t, "memory.current"): used[t] for t in measured} | {(t, "memory.refaults"): 0.0 for t in measured}
        snap = build.snapshot(*entitled, workloads=many, readings=readings, now=1000.0 + second)
        deeds = [*controller.act(replace(snap, support={**snap.support, **RECLAIM}))]
        assert len(deeds) <= AT_ONCE
        assert len(controller.attends) <= AT_ONCE
        for action in deeds:
            served[action.target] += 1
            used[action.target] -= action.amount
    assert served.pop(many[0].target) == 0
    assert min(served.values()) >= 5


def test_only_those_that_are_due_are_measured_closely() -> None:
    machine = Machine(1000 * MI, hot=0)
    attended = []
    for _ in range(9):
        machine.run(1)
        attended.append(bool(machine.controller.attends))
    assert attended == [False, False, False, True] * 2 + [False], "once in a period of 4 s"


@settings(deadline=None)
@given(
    used=st.integers(1, 4000),
    hot=st.floats(0, 1),
    floor=st.integers(0, 2000),
    pressures=st.lists(st.floats(0, 0.01), min_size=1, max_size=40),
)
def test_no_floor_is_touched_whatever_is_measured(used: int, hot: float, floor: int, pressures: list[float]) -> None:
    machine = Machine(used * MI, hot * used * MI, floor_memory=f"{floor}Mi")
    for pressure in pressures:
        before = machine.used
        for action in machine.run(1, pressure):
            assert before - action.amount >= floor * MI
            assert action.amount <= before * 0.08 + 1
