"""Disks are looked at when the kernel says that something happened, and hardly ever else."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

import pytest

from j10ce.model.machine.disk import Disk
from j10ce.observe.sensors.disk_watch import CLOSEST_S, LOOK_S, DiskWatch, open_events
from j10ce.testing import build

ADDED = b"add@/devices/virtual/block/loop9\0ACTION=add\0SUBSYSTEM=block\0DEVNAME=loop9\0"
OTHER = b"add@/devices/virtual/net/veth1\0ACTION=add\0SUBSYSTEM=net\0"


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.looks = 0
        self.disks: Mapping[str, Disk] = {"8:0": Disk("8:0")}
        self.kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setblocking(False)
        self.watch = DiskWatch(self.look, lambda: self.now, lambda: ours)
        self.facts = self.watch.seen(build.node())

    def look(self) -> Mapping[str, Disk]:
        self.looks += 1
        return dict(self.disks)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.facts = self.watch.seen(self.facts)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.watch.close()
    world.kernel.close()


def test_the_first_look_is_at_once(world: World) -> None:
    assert world.facts.disks == world.disks


def test_a_disk_that_came_is_seen_at_the_next_tick(world: World) -> None:
    world.tick(10.0)
    looks, world.disks = world.looks, {}
    world.kernel.send(ADDED)
    world.tick(1.0)
    assert (world.looks, world.facts.disks) == (looks + 1, {})


def test_what_happens_to_other_devices_costs_no_look(world: World) -> None:
    watch = DiskWatch(world.look, lambda: world.now, lambda: None)
    watch.close()  # mounts of this machine are none of this test's
    world.watch._mounts.close()
    looks = world.looks
    for _ in range(10):
        world.kernel.send(OTHER)
        world.tick(1.0)
    assert world.looks == looks


def test_a_flapping_disk_is_looked_at_every_few_seconds(world: World) -> None:
    world.watch._mounts.close()
    looks = world.looks
    for _ in range(100):
        world.kernel.send(ADDED)
        world.tick(0.1)
    assert looks < world.looks <= looks + 10 / CLOSEST_S + 1
    seen = world.looks
    world.tick(CLOSEST_S)
    assert world.looks == seen + 1


def test_an_unheard_change_is_found_within_a_minute(world: World) -> None:
    world.disks = {}
    world.tick(LOOK_S)
    assert world.facts.disks == {}


def test_facts_are_the_same_object_while_disks_are(world: World) -> None:
    before = world.facts
    world.tick(LOOK_S)
    assert world.facts is before


def test_this_machine_lets_us_listen_or_not() -> None:
    events = open_events()
    if events is not None:
        events.close()


def test_a_calibration_is_seen_at_the_next_look() -> None:
    known, looks = [False], [0]

    def look() -> Mapping[str, Disk]:
        looks[0] += 1
        return {"8:0": Disk("8:0", read_bps=looks[0])}

    now = [100.0]
    watch = DiskWatch(look, lambda: now[0], lambda: None, changed=lambda: known[0])
    watch._mounts.close()
    facts = watch.seen(build.node())
    for known[0], expected in ((False, 1), (True, 2)):
        now[0] += CLOSEST_S
        facts = watch.seen(facts)
        assert facts.disks["8:0"].read_bps == expected
    watch.close()
