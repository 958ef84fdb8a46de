"""When pressure runs the ring: at once, and never without end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from j10ce.agent.ring.pressure import Pressure
from j10ce.daemon.clock import Instant
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.testing import build
from j10ce.testing.cgroup_tree import cgroup_tree
from tests.agent.whole_ring import Ring


class Runner:
    """Stands for the shell: a clock, the last report, and a wish to run."""

    def __init__(self) -> None:
        self.now, self.period_s = 0.0, 1.0
        self.wake = asyncio.Event()
        self.clock = SimpleNamespace(read=lambda: Instant(self.now, self.now))
        self.report: SimpleNamespace | None = None

    def run(self) -> None:
        self.report = SimpleNamespace(at=Instant(self.now, self.now))
        self.wake.clear()


@pytest.fixture
def runner() -> Runner:
    return Runner()


@pytest.fixture
def pressure(runner: Runner, tmp_path: Path) -> Iterator[Pressure]:
    made = Pressure(runner, Layout(cgroup_tree(tmp_path, {}), Files(), "j10ce"))  # type: ignore[arg-type]
    yield made
    made.close()


def test_a_spike_long_before_the_next_tick_runs_the_ring_at_once(runner: Runner, pressure: Pressure) -> None:
    runner.run()
    runner.now = 0.5
    pressure.spiked()
    assert runner.wake.is_set()


def test_pressure_that_lasts_does_not_keep_the_ring_running(runner: Runner, pressure: Pressure) -> None:
    runs = 0
    for step in range(500):  # five seconds; a spike every 10 ms
        runner.now = step / 100
        pressure.spiked()
        if runner.wake.is_set() or step % 100 == 0:
            runner.run()
            runs += 1
    assert runs <= 11


def test_the_tiers_that_are_there_are_watched_and_no_others(tmp_path: Path, pressure: Pressure) -> None:
    ring = Ring(tmp_path / "journal")
    web = build.workload("web", profile="ls", pids=(1,))
    pressure.follow(ring.arrive(web))
    pressure.follow(ring.tick())
    watched = []
    pressure.triggers.follow = lambda paths: watched.append(set(paths)) or {}  # type: ignore[method-assign,func-returns-value]
    ring.arrive(build.workload("job", profile="be", pids=(2,)))
    pressure.follow(ring.tick())
    (files,) = watched
    tiers = {f.removeprefix(f"{tmp_path}/unified/") for f in files if not f.startswith("/proc")}
    assert tiers == {
        "j10ce/memory.pressure",
        "j10ce/sensitive/memory.pressure",
        "j10ce/sensitive/cpu.pressure",
        "j10ce_besteffort/memory.pressure",
    }
