"""A floor of a disk on the real kernel: the whole ring, a loop device, a reader with a floor and a writer without."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent
from j10ce.control.builtin import build as controllers
from j10ce.daemon.clock import Instant
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.estate import DiskEstate
from j10ce.kernel.disk.files import DiskFiles
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import Resources
from j10ce.model.workload import Ceiling, Part, Workload
from j10ce.observe.closely import Closely
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensors.disks import DiskSensor
from j10ce.observe.siblings import Siblings
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.enforce.disk.loop import Loop, loop
from tests.enforce.disk.test_conformance import read_s
from tests.enforce.workbench import MIB, PATIENCE_S, Workbench, until

LOOP = """
import mmap, os
fd, page = os.open({device!r}, os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, {size})
while True:
    for at in range({first}, {first} + {span}, {size}):
        os.{call}(fd, [page], at)
"""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Loop]:
    with loop(tmp_path / "image", 128 * MIB) as made:
        yield made


class DiskRing:
    """The agent's ring over this machine, with one disk that is said to do 4 MiB/s each way. Seconds are real."""

    def __init__(self, work: Workbench, folder: Path, device: Loop) -> None:
        files, hierarchies = Files(), work.hierarchies
        io, rate = IoController(hierarchies), 4 * MIB
        here = Disk(device.number, device.name, managed=True, queued=True, read_bps=rate, write_bps=rate)
        facts = build.node(disks={here.number: here})
        tree, closely = GroupTree(Layout(hierarchies, files, work.top), Siblings(hierarchies)), Closely()
        sensor = DiskSensor(hierarchies, files, lambda: facts.disks, lambda: closely.disks)
        self.kernel = Kernel(
            work.tree,
            [work.backend, DiskFiles(io)],
            Journal.open(folder / "journal", "boot"),
            guard=Guard(),
            estates=[DiskEstate()],
        )
        observer = Observer(facts, [sensor], tree, closely=closely)
        document = NodeDocument(node=facts.name, profiles=builtin())
        self.agent = Agent(self.kernel, observer, [Contained(c) for c in controllers({})], document, armed=True)

    def arrive(self, *workloads: Workload) -> None:
        self.agent.change([WorkloadEvent("ADDED", w) for w in workloads], self._now())

    def until_cap(self, setting: Setting, *, ended: bool) -> float:
        """Once a second, until the setting is limited, or is not any more."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.agent.tick(self._now())
            held = self.kernel.settings.get(setting, math.inf)
            assert isinstance(held, float)
            if (held == math.inf) == ended:
                return held
            assert time.monotonic() < deadline, "it did not come about"
            time.sleep(1.0)

    def _now(self) -> Instant:
        return Instant(time.monotonic(), build.WALL)


@pytest.mark.slow
def test_a_writer_is_capped_while_a_reader_with_a_floor_works_and_no_longer(
    work: Workbench, tmp_path: Path, device: Loop
) -> None:
    if "io.max.rbps" not in (offered := DiskFiles(IoController(work.hierarchies)).knobs()):
        pytest.skip(f"Unsupported: io.max needs {offered['io.max.rbps'].needs}")
    ring = DiskRing(work, tmp_path, device)
    reader, writer = (
        work.tree.path_for(tier, "default", name) for tier, name in (("sensitive", "db"), ("standard", "sync"))
    )
    floor = Resources(disk_read=2 * MIB)
    db = replace(build.workload("db", profile="ls", handle=reader), minimum=floor)
    sync = build.workload("sync", profile="burstable", handle=writer)  # best effort may lack CPU time, too
    ring.arrive(db, sync)
    entitled = ring.agent.tick(ring._now()).snap.entitlements[db.target]
    assert entitled.floor.disk_read == 2 * MIB, entitled.notes
    reading = work.spawn(reader, LOOP.format(device=device.device, size=4096, first=0, span=64 * MIB, call="preadv"))
    writing = work.spawn(
        writer, LOOP.format(device=device.device, size=MIB, first=64 * MIB, span=64 * MIB, call="pwritev")
    )
    cap = Setting(sync.target, "io.max.wbps", device.number)
    assert ring.until_cap(cap, ended=False) < 4 * MIB
    assert Setting(db.target, "io.max.rbps", device.number) not in ring.kernel.settings
    work.end(reading)
    assert ring.until_cap(cap, ended=True) == math.inf
    work.end(writing)
    until(lambda: not ring.kernel.revert().refused())  # a cgroup whose last process has just ended is not empty yet
    ring.kernel.close()


def test_a_cap_of_a_pod_binds_its_containers(work: Workbench, tmp_path: Path, device: Loop) -> None:
    """16 MiB at 8 MiB/s, or on cgroup v1 at the container's part of that."""
    ring = DiskRing(work, tmp_path, device)
    at, *inside = work.make("pod1"), *(work.make("pod1", name) for name in ("main", "proxy"))
    pod = replace(
        build.workload("pod1", profile="ls", handle=replace(at, made=False)),
        parts=tuple(Part(c.path.rpartition("/")[2], replace(c, made=False)) for c in inside),
        limits=Ceiling(disk_read=8.0 * MIB),
    )
    ring.arrive(pod)
    ring.agent.tick(ring._now())
    took = read_s(work, inside[0].path, device, 16)
    assert took >= 1.0, ring.kernel.settings
    until(lambda: not ring.kernel.revert().refused())
    ring.kernel.close()
    assert read_s(work, inside[0].path, device, 16) < took
