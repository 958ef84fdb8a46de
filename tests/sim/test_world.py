"""The real ring on a simulated machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.sim.world import Load, World
from j10ce.testing import build

WEB = build.workload("web", profile="ls", cpu="1", min_cpu="1")
BATCH = build.workload("batch", profile="be")
GI = float(1 << 30)


def constant(cpus: float) -> Load:
    return Load(cpu=lambda _: cpus)


def run(world: World, seconds: int) -> None:
    for _ in range(seconds):
        world.step()


def test_a_floor_holds_and_best_effort_uses_the_rest(tmp_path: Path) -> None:
    world = World(tmp_path, cpus=4)
    world.add(WEB, constant(1.0))
    world.add(BATCH, constant(8.0))
    run(world, 60)
    assert world.of(WEB.target).starved < 0.05 * world.of(WEB.target).wanted
    assert world.of(BATCH.target).got == pytest.approx(60 * 3.0, rel=0.1)


def test_a_machine_whose_loads_stand_still_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path, cpus=4)
    world.add(WEB, constant(1.0))
    world.add(BATCH, constant(8.0))
    run(world, 60)
    settled = world.changes
    run(world, 300)
    assert world.changes == settled


def test_what_ends_is_given_back(tmp_path: Path) -> None:
    world = World(tmp_path, cpus=4)
    before = sorted(world.kernel.cgroups.by_path)
    world.add(WEB, constant(1.0))
    run(world, 5)
    world.remove(WEB.target)
    run(world, 5)
    assert sorted(world.kernel.cgroups.by_path) == before


def test_a_stranger_counts_and_is_never_touched(tmp_path: Path) -> None:
    world = World(tmp_path, cpus=2)
    world.add_stranger("user.slice", constant(8.0), weight=4096.0)
    world.add(WEB, constant(1.0))
    run(world, 30)
    assert world.of(WEB.target).got >= 0.95 * 30
    assert world.kernel["user.slice"].values == {"cpu.weight": 4096.0}


def test_what_outgrows_the_machine_is_killed_and_leaves(tmp_path: Path) -> None:
    world = World(tmp_path, memory=8 << 30, lacking=("memory.high",))
    world.add(build.workload("leak", profile="burstable"), Load(memory=lambda t: t * GI))
    run(world, 12)
    assert list(world.ended.values()) == ["killed"]
    assert not world.agent.workloads
