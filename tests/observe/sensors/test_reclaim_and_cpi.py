"""Shortage of memory on the machine, and cycles per instruction of a workload."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Unsupported
from j10ce.host import perf
from j10ce.host.mounts import Hierarchies
from j10ce.host.perf import Counts, PerfCounters
from j10ce.model.knob import NODE
from j10ce.observe.sensors.counters import CLOSE_EVERY, transferred
from j10ce.observe.sensors.cpi import MOST_DESCRIPTORS, CpiSensor
from j10ce.observe.sensors.reclaim import ReclaimSensor
from j10ce.testing.build import handle, workload
from j10ce.testing.cgroup_tree import cgroup_tree
from j10ce.testing.hardware.counters import FakeCounters

VMSTAT = """nr_free_pages 5
workingset_refault_anon {anon}
workingset_refault_file {file}
allocstall_normal {normal}
allocstall_movable {movable}
pgscan_direct {scanned}
pgscan_direct_throttle 7
"""
CPUS = frozenset((0, 1))


def test_stalls_of_all_zones_and_refaults_of_both_kinds_are_summed(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    sensor, seen = ReclaimSensor(str(tmp_path)), dict[str, float]()
    for n in range(2 * CLOSE_EVERY):
        text = VMSTAT.format(anon=n, file=2 * n, normal=10 * n, movable=5 * n, scanned=100 * n)
        (tmp_path / "proc/vmstat").write_text(text)
        seen |= {s.metric: s.value for s in sensor.sample(float(n), ()) if s.target == NODE}
    assert seen == {"memory.direct_reclaim": 100.0, "memory.stalls": 15.0, "memory.refaults": 3.0}


def test_this_machine_says_whether_it_is_short_of_memory() -> None:
    sensor = ReclaimSensor()
    samples = [s for n in range(2 * CLOSE_EVERY) for s in sensor.sample(float(n), ())]
    assert "memory.direct_reclaim" in {s.metric for s in samples}


@given(st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 2**63)), max_size=5))
def test_bytes_of_all_devices_are_summed(devices: list[tuple[int, int]]) -> None:
    lines = [f"8:{n} rbytes={r} wbytes={w} rios=9 wios=9 dbytes=5\n" for n, (r, w) in enumerate(devices)]
    assert transferred("".join(lines).encode()) == sum(r + w for r, w in devices)


def test_cycles_per_instruction_are_those_between_two_looks(tmp_path: Path) -> None:
    hierarchies, fake = cgroup_tree(tmp_path, {"web": {}}), FakeCounters()
    w, directory = workload("web", handle=handle("web")), hierarchies.directory("unified", "web")
    sensor, seen = CpiSensor(hierarchies, lambda: {w.target}, lambda: CPUS, fake), []
    for n in range(2 * CLOSE_EVERY):
        fake.counters[directory] = Counts(cycles=30_000_000 * n, instructions=10_000_000 * n)
        seen += [s.value for s in sensor.sample(float(n), [w])]
    assert seen == [pytest.approx(3.0)]


def test_too_few_instructions_say_nothing(tmp_path: Path) -> None:
    hierarchies, fake = cgroup_tree(tmp_path, {"web": {}}), FakeCounters()
    w = workload("web", handle=handle("web"))
    fake.counters[hierarchies.directory("unified", "web")] = Counts(10, 10)
    sensor = CpiSensor(hierarchies, lambda: {w.target}, lambda: CPUS, fake)
    assert not [s for n in range(3 * CLOSE_EVERY) for s in sensor.sample(float(n), [w])]


def test_counters_are_closed_once_nobody_looks_and_never_beyond_the_budget(tmp_path: Path) -> None:
    names = [f"w{n}" for n in range(MOST_DESCRIPTORS)]
    hierarchies, fake = cgroup_tree(tmp_path, {name: {} for name in names[:4]}), FakeCounters()
    fake.counters = {hierarchies.directory("unified", name): Counts(0, 0) for name in names}
    many = [workload(name, handle=handle(name)) for name in names]
    closely = {w.target for w in many}
    sensor = CpiSensor(hierarchies, lambda: closely, lambda: CPUS, fake)
    for n in range(CLOSE_EVERY):
        list(sensor.sample(float(n), many))
    assert len(fake.opened) == MOST_DESCRIPTORS // (2 * len(CPUS))
    closely.clear()
    for n in range(CLOSE_EVERY):
        list(sensor.sample(float(n), many))
    assert not fake.opened


def test_a_workload_that_is_not_in_the_hierarchy_has_none(tmp_path: Path) -> None:
    hierarchies, w = cgroup_tree(tmp_path, {"web": {}}), workload("ghost", handle=handle("ghost"))
    sensor = CpiSensor(hierarchies, lambda: {w.target}, lambda: CPUS, FakeCounters())
    assert not [s for n in range(CLOSE_EVERY) for s in sensor.sample(float(n), [w])]


def test_this_machine_counts_or_says_what_it_needs() -> None:
    unified = Hierarchies.discover().unified
    if unified is None:
        pytest.skip("Unsupported: needs cgroup v2")
    needs, online = perf.missing(), frozenset(os.sched_getaffinity(0))
    if needs:
        with pytest.raises(Unsupported, match="cpi"):
            PerfCounters(unified.path, online)
        return
    counters = PerfCounters(unified.path, online)
    first = counters.read()
    assert counters.read().cycles >= first.cycles > 0
    counters.close()
