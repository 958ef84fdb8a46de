"""What workloads do with disks, by the kernel's counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.host.files import Files
from j10ce.model.knob import disk
from j10ce.model.machine.disk import Disk
from j10ce.model.workload import Part, Workload
from j10ce.observe.sensor import OffCgroups
from j10ce.observe.sensors.disks import TURNS, DiskSensor, Done, blkio, io_stat, vrates
from j10ce.testing.build import handle, workload
from j10ce.testing.cgroup_tree import cgroup_tree

WEB, IDLE = workload("web", handle=handle("web")), workload("idle", handle=handle("idle"))
STAT = "{} 0 {} 0 {} 0 {} 0 0 {} 0\n"
V1 = ("cpu", "cpuacct", "cpuset", "memory", "io")
V2_TEXT = "8:0 rbytes={} wbytes={} rios={} wios={} dbytes=0 dios=0"


class World:
    def __init__(self, root: Path, version: int) -> None:
        self.root, self.version, self.now = root, version, 100.0
        tree = {"web": {}, "idle": {}}
        self.hierarchies = cgroup_tree(root / "cg", tree, v1=V1 if version == 1 else ())
        self.io = root / "cg" / ("io" if version == 1 else "unified")
        (root / "sys" / "block" / "sda").mkdir(parents=True)
        self.disks = {"8:0": Disk("8:0", name="sda", managed=True), "8:16": Disk("8:16", name="sdb")}
        self.sensor = DiskSensor(
            self.hierarchies, Files(0), lambda: self.disks, lambda: (WEB.target,), str(root / "sys")
        )

    def count(self, *n: int) -> None:
        """Bytes read and written, reads and writes, of the disk and of `web`."""
        read, written, reads, writes = n
        fields = STAT.format(reads, read // 512, writes, written // 512, 500 * reads)
        (self.root / "sys" / "block" / "sda" / "stat").write_text(fields)
        if self.version == 2:
            (self.io / "web" / "io.stat").write_text(V2_TEXT.format(*n) + "\n")
            (self.io / "io.stat").write_text(V2_TEXT.format(*n) + " cost.vrate=87.50\n")
            return
        for name, (r, w) in {"io_service_bytes": n[:2], "io_serviced": n[2:]}.items():
            text = f"8:0 Read {r}\n8:0 Write {w}\n8:0 Sync 0\n8:0 Total {r + w}\nTotal {r + w}\n"
            (self.io / "web" / f"blkio.throttle.{name}").write_text(text)

    def sample(self, *workloads: Workload) -> dict[tuple[str, str], float]:
        self.now += 2.0
        return {(s.target, s.metric): s.value for s in self.sensor.sample(self.now, workloads or (WEB, IDLE))}


@pytest.fixture(params=[1, 2])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, request.param)


def test_bytes_and_operations_become_rates_by_disk_and_in_all(world: World) -> None:
    world.count(0, 512, 1, 1)
    world.sample()
    world.count(1 << 20, 512 + 4096, 3, 2)
    seen = world.sample()
    expected = {"disk.read": float(1 << 19), "disk.write": 2048.0, "disk.riops": 1.0, "disk.wiops": 0.5}
    of_web = {metric: value for (target, metric), value in seen.items() if target == WEB.target}
    assert of_web == {**expected, **{f"{m}[8:0]": value for m, value in expected.items()}}
    of_disk = {metric: value for (target, metric), value in seen.items() if target == disk("8:0")}
    pace = {"io.vrate": 87.5} if world.version == 2 else {}
    assert of_disk == {**expected, "disk.busy": 0.5, **pace}


def test_whoever_never_touched_a_disk_has_no_series(world: World) -> None:
    world.count(0, 0, 0, 0)
    for _ in range(TURNS + 1):
        assert not any(target == IDLE.target or target == WEB.target for target, _ in world.sample())


def test_only_managed_disks_are_targets(world: World) -> None:
    world.count(1, 1, 1, 1)
    world.sample()
    assert isinstance(world.sensor, OffCgroups)
    assert list(world.sensor.targets) == [disk("8:0")]
    world.disks = {}
    world.sample()
    assert list(world.sensor.targets) == []


def test_a_workload_that_is_gone_is_forgotten(world: World) -> None:
    world.count(4096, 0, 1, 0)
    world.sample()
    world.sample(IDLE)
    world.count(8192, 0, 2, 0)
    assert not any(target == WEB.target for target, _ in world.sample())


def test_an_io_of_a_volume_counts_once_in_all(tmp_path: Path) -> None:
    world = World(tmp_path, 2)
    world.disks = {"253:0": Disk("253:0", below=("8:0",)), "8:0": Disk("8:0")}
    for size in (4096, 8192):
        text = "\n".join(f"{n} rbytes={size} wbytes=0 rios=1 wios=0" for n in ("253:0", "8:0"))
        (world.io / "web" / "io.stat").write_text(text)
        seen = world.sample()
    assert seen[WEB.target, "disk.read"] == seen[WEB.target, "disk.read[253:0]"] == 2048.0


def test_numbers_without_a_line_end_are_those_of_the_disk_that_follows() -> None:
    text = b"253:0 7:0 rbytes=1 wbytes=2 rios=3 wios=4\n8:16 \n8:0 rbytes=5 wbytes=x rios=6"
    assert io_stat(text) == {"7:0": Done(1, 2, 3, 4), "8:0": Done(5, 0, 6, 0)}


@given(
    st.binary(max_size=200) | st.text(alphabet="8:0 rbytes=wiosRead Write\n1cost.vrate=", max_size=200).map(str.encode)
)
def test_any_text_of_counters_is_read(text: bytes) -> None:
    for counts in (io_stat(text), blkio(text, text)):
        assert all(isinstance(done, Done) and min(done) >= 0 for done in counts.values())
    assert all(v >= 0 for v in vrates(text).values())


def test_on_cgroup_v1_containers_are_read_as_well_since_caps_are_theirs(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    pod = replace(WEB, parts=(Part("main", IDLE.handle),))
    for count in (4096, 8192):
        for name in ("io_service_bytes", "io_serviced"):
            for place in ("web", "idle"):
                (world.io / place / f"blkio.throttle.{name}").write_text(f"8:0 Read {count}\n8:0 Write 0\n")
        world.now += 1.0
        samples = {(s.target, s.metric): s.value for s in world.sensor.sample(world.now, [pod])}
    assert samples[pod.part_targets[0], "disk.read[8:0]"] == samples[pod.target, "disk.read[8:0]"] == 4096.0
