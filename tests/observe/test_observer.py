"""The observer: one snapshot of everything, whatever a sensor does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.model.knob import NODE, TargetId
from j10ce.model.snapshot import NodeFacts, Snapshot
from j10ce.model.workload import Handle, Workload
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensor import Sample
from j10ce.observe.siblings import Siblings
from j10ce.testing.build import node, workload
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

WEB = workload("web", handle=Handle("j10ce/standard/default_web"))
DB = workload("db", handle=Handle("j10ce/standard/default_db"))


class FakeSensor:
    """Yields one number per workload and one for the node; raises when a test wants it."""

    def __init__(self, name: str = "fake", value: float = 1.0) -> None:
        self.name = name
        self.value = value
        self.error = ""

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        yield Sample(NODE, self.name, self.value)
        if self.error:
            raise RuntimeError(self.error)
        for w in workloads:
            yield Sample(w.target, self.name, self.value)


class World:
    def __init__(self, root: Path, *sensors: FakeSensor) -> None:
        hierarchies = cgroup_tree(root, {"system": fresh(2)})
        self.facts = node()
        tree = GroupTree(Layout(hierarchies, Files(), "j10ce"), Siblings(hierarchies))
        self.observer = Observer(self.facts, sensors, tree, self.refresh)
        self.workloads: dict[TargetId, Workload] = {WEB.target: WEB}

    def refresh(self, _: NodeFacts) -> NodeFacts:
        return self.facts

    def tick(self, now: float, epoch: int = 0) -> Snapshot:
        self.observer.sample(now, self.workloads.values())
        return self.observer.snapshot(now, 1e9, self.workloads, {}, {}, {}, epoch)


def last(snap: Snapshot, target: TargetId, metric: str = "fake") -> float | None:
    return snap.readings.window(target, metric, 60.0).last()


def test_a_snapshot_holds_what_was_sampled(tmp_path: Path) -> None:
    snap = World(tmp_path, FakeSensor(value=7.0)).tick(100.0)
    assert last(snap, WEB.target) == last(snap, NODE) == 7.0
    assert snap.workloads == {WEB.target: WEB}
    assert WEB.target in snap.groups.by_target
    assert (snap.now, snap.wall) == (100.0, 1e9)


def test_a_sample_at_this_very_instant_is_in_a_window_of_no_length(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSensor())
    world.tick(100.0)
    assert len(world.tick(101.0).readings.window(WEB.target, "fake", 0.0)) == 1


def test_sampling_again_right_away_is_left_out(tmp_path: Path) -> None:
    sensor = FakeSensor()
    world = World(tmp_path, sensor)
    world.tick(100.0)
    sensor.value = 9.0
    assert last(world.tick(100.1), NODE) == 1.0
    assert last(world.tick(100.3), NODE) == 9.0


def test_a_sensor_that_raises_does_not_silence_the_others(tmp_path: Path) -> None:
    bad, good = FakeSensor("bad"), FakeSensor("good")
    bad.error = "no such counter"
    world = World(tmp_path, bad, good)
    snap = world.tick(100.0)
    assert last(snap, NODE, "bad") == 1.0
    assert last(snap, WEB.target, "bad") is None
    assert last(snap, WEB.target, "good") == 1.0
    assert world.observer.failing == {"bad": "RuntimeError: no such counter"}
    bad.error = ""
    world.tick(101.0)
    assert world.observer.failing == {}


def test_the_epoch_stands_while_nothing_moves(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSensor())
    first = world.tick(100.0, epoch=5)
    assert [world.tick(now, epoch=5).epoch for now in (101.0, 115.0)] == [first.epoch] * 2


@pytest.mark.parametrize("what", ["caller", "arrival", "departure", "hotplug"])
def test_the_epoch_moves_with(what: str, tmp_path: Path) -> None:
    world = World(tmp_path, FakeSensor())
    before = world.tick(100.0)
    match what:
        case "arrival":
            world.workloads = {**world.workloads, DB.target: DB}
        case "departure":
            world.workloads = {}
        case "hotplug":
            world.facts = replace(world.facts, cpus=frozenset({0}))
    after = world.tick(101.0, epoch=1 if what == "caller" else 0)
    assert after.epoch > before.epoch
    assert after.node == world.facts


def test_what_is_gone_is_forgotten_and_starts_afresh(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSensor())
    world.tick(100.0)
    world.workloads = {}
    assert last(world.tick(101.0), WEB.target) is None
    world.workloads = {WEB.target: WEB}
    assert len(world.tick(102.0).readings.window(WEB.target, "fake", 60.0)) == 1


def test_an_arrival_reported_at_once_is_in_the_next_snapshot_without_sampling(tmp_path: Path) -> None:
    world = World(tmp_path, FakeSensor())
    world.tick(100.0)
    world.workloads = {**world.workloads, DB.target: DB}
    world.observer.arrived(DB)
    snap = world.observer.snapshot(100.01, 1e9, world.workloads, {}, {}, {})
    assert DB.target in snap.groups.by_target
    assert last(snap, DB.target) is None
