"""Which disks a machine has, and where on them what a workload does is counted and limited."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.host.disks import MOST_MOUNTS, FileSystem, discover, file_systems, identity, under, whole_disk
from j10ce.model.machine.disk import Disk, parse_number

ROOT = "20 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n"


class Machine(NamedTuple):
    """Files below /sys as the kernel lays them out."""

    sys: Path

    def disk(self, name: str, number: str, *, files: dict[str, str] | None = None, queued: bool = True) -> Path:
        path = self.sys / "devices" / "pci0" / "block" / name
        self._device(path, number, {"size": "2048\n", "ro": "0\n", "queue/rotational": "0\n", **(files or {})})
        (path / "slaves").mkdir()
        if queued:
            (path / "mq").mkdir()
        (self.sys / "block").mkdir(exist_ok=True)
        (self.sys / "block" / name).symlink_to(path)
        return path

    def partition(self, disk: Path, name: str, number: str) -> Path:
        self._device(disk / name, number, {"partition": "1\n", "size": "1024\n"})
        return disk / name

    def made_of(self, upper: Path, *lower: Path) -> None:
        for path in lower:
            (upper / "slaves" / path.name).symlink_to(path)

    def _device(self, path: Path, number: str, files: dict[str, str]) -> None:
        for name, text in {"dev": f"{number}\n", **files}.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        by_number = self.sys / "dev" / "block"
        by_number.mkdir(parents=True, exist_ok=True)
        (by_number / number).symlink_to(path)

    def disks(self, mountinfo: str = "", *, charged: bool = True) -> dict[str, Disk]:
        (self.sys / "mountinfo").write_text(mountinfo)
        return dict(discover(str(self.sys), str(self.sys / "mountinfo"), charged=charged))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_disk_is_what_its_files_say(machine: Machine) -> None:
    files = {"serial": "S3X \n", "queue/scheduler": "none [bfq] kyber\n", "queue/rotational": "1\n"}
    machine.disk("vda", "254:0", files=files)
    expected = Disk("254:0", "vda", "S3X", size=1 << 20, queued=True, rotational=True, scheduler="bfq")
    assert machine.disks() == {"254:0": expected}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        pytest.param("loop0", {"size": "0\n"}, id="a loop device without a file"),
        pytest.param("zram0", {}, id="memory"),
        pytest.param("sr0", {}, id="a CD drive"),
        pytest.param("sdz", {"dev": "what\n"}, id="no number"),
        pytest.param("sdz", {"size": "-1\n"}, id="no size"),
    ],
)
def test_what_takes_no_io_of_workloads_is_no_disk(machine: Machine, name: str, files: dict[str, str]) -> None:
    machine.disk(name, "7:0", files=files)
    assert machine.disks() == {}


def test_what_is_on_a_partition_is_on_its_disk(machine: Machine) -> None:
    machine.partition(machine.disk("sda", "8:0"), "sda2", "8:2")
    disk = machine.disks(ROOT)["8:0"]
    assert (disk.holds, disk.managed, disk.uncharged) == (("/",), True, ())
    assert whole_disk("8:2", str(machine.sys)) == whole_disk("8:0", str(machine.sys)) == "8:0"
    assert whole_disk("9:9", str(machine.sys)) == whole_disk("../8:2", str(machine.sys)) == ""


def test_a_volume_takes_caps_and_its_disks_weights(machine: Machine) -> None:
    sda, sdb = machine.disk("sda", "8:0"), machine.disk("sdb", "8:16")
    mirror = machine.disk("md0", "9:0", files={"md/level": "raid1\n", "md/uuid": "m-1\n"}, queued=False)
    volume = machine.disk("dm-0", "253:0", files={"dm/name": "root\n", "dm/uuid": "LVM-x\n"}, queued=False)
    machine.made_of(mirror, machine.partition(sda, "sda1", "8:1"), sdb)
    machine.made_of(volume, mirror)
    disks = machine.disks("20 1 253:0 / / rw - xfs /dev/mapper/root rw\n")
    assert {n: (d.kind, d.below, d.queued, d.managed) for n, d in disks.items()} == {
        "8:0": ("", (), True, True),
        "8:16": ("", (), True, True),
        "9:0": ("md", ("8:0", "8:16"), False, True),
        "253:0": ("dm", ("9:0",), False, True),
    }
    assert (disks["9:0"].serial, disks["253:0"].serial, disks["8:0"].lasting) == ("m-1", "LVM-x", "sda-1048576")


def test_a_volume_that_is_made_of_itself_ends(machine: Machine) -> None:
    one, two = machine.disk("dm-0", "253:0"), machine.disk("dm-1", "253:1")
    machine.made_of(one, two)
    machine.made_of(two, one)
    assert machine.disks("20 1 253:0 / / rw - xfs /dev/mapper/root rw\n")["253:1"].managed


@pytest.mark.parametrize(
    ("line", "charged", "uncharged"),
    [
        ("20 1 8:2 / /data rw - ext4 /dev/sda2 rw", True, False),
        ("20 1 8:2 / /data rw - ext4 /dev/sda2 rw,data=journal", True, True),
        ("20 1 8:2 / /data rw - vfat /dev/sda2 rw", True, True),
        ("20 1 8:2 / /data ro - vfat /dev/sda2 ro", True, False),
        ("20 1 8:2 / /data rw - xfs /dev/sda2 rw", False, True),
    ],
)
def test_file_systems_whose_write_back_is_nobodys_are_named(
    machine: Machine, line: str, charged: bool, uncharged: bool
) -> None:
    machine.partition(machine.disk("sda", "8:0"), "sda2", "8:2")
    disk = machine.disks(f"{line}\n", charged=charged)["8:0"]
    assert disk.uncharged == (("/data",) if uncharged else ())


def test_what_an_overlay_writes_is_on_the_disk_below_it(machine: Machine) -> None:
    machine.partition(machine.disk("sda", "8:0"), "sda2", "8:2")
    overlay = "21 20 0:44 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/var/up,workdir=/var/work\n"
    assert machine.disks(f"22 20 8:2 / /var rw - ext4 /dev/sda2 rw\n{overlay}")["8:0"].holds == ("/var",)
    assert machine.disks(overlay) == {"8:0": Disk("8:0", "sda", size=1 << 20, queued=True)}


@pytest.mark.parametrize(
    ("kind", "there"), [("btrfs", True), ("fuse", False), ("fuse.sshfs", False)], ids=lambda v: str(v)
)
def test_whoever_mounts_by_fuse_puts_nothing_on_a_disk_that_he_names(machine: Machine, kind: str, there: bool) -> None:
    machine.disk("named", "1:3")  # the number of /dev/null, which is there on every machine
    disk = machine.disks(f"21 20 0:44 / /home/eve/mine rw - {kind} /dev/null rw\n")["1:3"]
    assert (disk.managed, disk.holds) == (there, ("/home/eve/mine",) if there else ())


def test_the_same_file_system_shown_a_thousand_times_is_named_once(machine: Machine) -> None:
    machine.partition(machine.disk("sda", "8:0"), "sda2", "8:2")
    shown = "".join(f"{n} 1 8:2 /pods/{n} /run/{n} rw - ext4 /dev/sda2 rw\n" for n in range(100, 1100))
    assert machine.disks(ROOT + shown)["8:0"].holds == ("/",)
    assert machine.disks(shown)["8:0"].holds == ("/run/100",)
    assert len(machine.disks(shown.replace(" /pods/", " / /").replace("/ /", "/ /x"))["8:0"].holds) <= MOST_MOUNTS


def test_a_disk_that_cannot_be_written_is_not_managed(machine: Machine) -> None:
    machine.disk("loop3", "7:3", files={"ro": "1\n", "loop/backing_file": "/snaps/core.snap\n"})
    disk = machine.disks("20 1 7:3 / /snap/core ro - squashfs /dev/loop3 ro\n")["7:3"]
    assert (disk.kind, disk.managed, disk.holds) == ("loop", False, ("/snap/core",))


def test_identity_is_of_the_disk_and_not_of_its_number(machine: Machine) -> None:
    machine.disk("sda", "8:0")
    assert identity("8:0", str(machine.sys)) is not None
    assert identity("8:16", str(machine.sys)) is identity("../..", str(machine.sys)) is None


def test_a_machine_without_disks_has_none(tmp_path: Path) -> None:
    assert discover(str(tmp_path), str(tmp_path / "mountinfo")) == {}


def test_the_deepest_mount_point_has_a_path() -> None:
    fs = file_systems(ROOT + "22 20 8:17 / /srv rw - xfs /dev/sdb1 rw\n23 20 8:18 / /srv rw - ext4 /dev/sdb2 rw\n")
    assert [f.number for p in ("/etc", "/srv", "/srv/x", "/srv2") if (f := under(p, fs))] == [
        "8:2",
        "8:18",
        "8:18",
        "8:2",
    ]


@given(st.text(alphabet="0:8/ -\\1\nabc,=", max_size=200))
def test_any_mount_table_is_read_or_left_out(text: str) -> None:
    assert all(isinstance(fs, FileSystem) and parse_number(fs.number) for fs in file_systems(text))


@pytest.mark.parametrize("text", ["", "8", "8:", "8:0 ", "8:0\n", "-1:0", "٨:0", "8:0/../9", "12345678:0"])
def test_what_is_no_number_of_a_disk_is_told(text: str) -> None:
    assert parse_number(text) is None
    assert parse_number("254:17") == (254, 17)
