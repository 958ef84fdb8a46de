"""`calibrate` on loop devices of its own: what it measures, what it leaves behind, and what it says where it cannot."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from j10ce.cli.main import cli
from j10ce.cli.prove import calibrate
from j10ce.cli.prove.direct_io import WORKS, device, fill, measure
from j10ce.cli.prove.places import place
from j10ce.errors import NotFound, QosError
from j10ce.host.disks import discover
from j10ce.observe.calibrations import Calibrations
from tests.enforce.disk.loop import Loop, loop
from tests.enforce.workbench import MIB

pytestmark = pytest.mark.host
SIZE = 96 * MIB


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Loop]:
    with loop(tmp_path / "image", SIZE) as made:
        yield made


@pytest.fixture
def mounted(raw: Loop, tmp_path: Path) -> Iterator[Path]:
    """A file system on it."""
    made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", raw.device], capture_output=True, text=True)
    folder = tmp_path / "mnt"
    folder.mkdir()
    at = subprocess.run(["mount", raw.device, str(folder)], capture_output=True, text=True)
    if made.returncode or at.returncode:
        pytest.skip(f"Unsupported: a file system on a loop device: {made.stderr}{at.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in ("RUN", "STATE", "CONFIG"):
        monkeypatch.setenv(f"J10CE_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setattr(calibrate, "QUICK_SECONDS", 0.05)
    monkeypatch.setattr(calibrate, "QUICK_MOST", 32 * MIB)

    def ended(*words: str) -> Result:
        return CliRunner().invoke(cli, ["calibrate", *words])

    return ended


def fill_up(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * MIB)


def kept(tmp_path: Path) -> Calibrations:
    return Calibrations(tmp_path / "state")


def test_a_file_system_of_the_disk_is_read_and_written_and_left_as_it_was(
    run: Any, raw: Loop, mounted: Path, tmp_path: Path
) -> None:
    before = sorted(os.listdir(mounted))
    result = run(raw.device, "--quick", "-o", "json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["number"] == raw.number
    assert all(said[way][n] > 0 for way in ("reads", "writes") for n in ("bps", "seqIops", "iops"))
    assert sorted(os.listdir(mounted)) == before
    disk = kept(tmp_path).seen(discover())[raw.number]
    assert (disk.read_bps, disk.write_bps) == (said["reads"]["bps"], said["writes"]["bps"])
    assert disk.calibrated


def test_a_disk_without_a_file_system_is_read_and_never_written_to(run: Any, raw: Loop, tmp_path: Path) -> None:
    with open(raw.device, "r+b", buffering=0) as block:
        block.write(b"somebody's" * 100)
        os.fsync(block.fileno())
    content = (tmp_path / "image").read_bytes()
    result = run(raw.device, "--quick")
    assert result.exit_code == 0, result.output
    assert "what it writes was not measured" in result.stdout
    assert (tmp_path / "image").read_bytes() == content
    disk = kept(tmp_path).seen(discover())[raw.number]
    assert disk.read_bps > 0
    assert not disk.calibrated


def test_a_full_file_system_is_said_with_what_is_free(run: Any, raw: Loop, mounted: Path, tmp_path: Path) -> None:
    fill_up(mounted / "full")
    result = run(raw.device, "--quick")
    assert isinstance(result.exception, QosError)
    assert "free; calibrating takes 32Mi" in str(result.exception)
    assert not kept(tmp_path).path.exists()


def test_a_disk_that_is_too_small_is_not_measured(run: Any, tmp_path: Path) -> None:
    with loop(tmp_path / "little", 4 * MIB) as small:
        result = run(small.device, "--quick")
    assert "too small to be measured: 4Mi" in str(result.exception)


@pytest.fixture
def pulls(tmp_path: Path) -> None:
    """A file that is cut off stands for a disk that is pulled, where the kernel fails what is read there then."""
    page = mmap.mmap(-1, 4096)
    with loop(tmp_path / "tried", SIZE) as tried:
        os.truncate(tmp_path / "tried", 0)
        opened = os.open(tried.device, os.O_RDWR | os.O_DIRECT)
        try:
            os.preadv(opened, [page], 0)
        except OSError:
            return
        finally:
            os.close(opened)
    pytest.skip("Unsupported: this kernel's loop devices go on where their file has ended")


@pytest.mark.usefixtures("pulls")
def test_a_disk_that_is_pulled_ends_it_with_an_error(raw: Loop, tmp_path: Path) -> None:
    with device(raw.device) as opened, pytest.raises(OSError):  # noqa: PT011 EIO or ENXIO, as the kernel has it
        measure(opened, WORKS[2], 600.0, lambda _: os.truncate(tmp_path / "image", 0))


@pytest.mark.usefixtures("pulls")
def test_nothing_is_kept_of_a_disk_that_was_pulled(run: Any, raw: Loop, tmp_path: Path) -> None:
    os.truncate(tmp_path / "image", 0)
    result = run(raw.device, "--quick")
    assert "could not be measured" in str(result.exception)
    assert not kept(tmp_path).path.exists()


@pytest.mark.parametrize("path", ["/nonexistent", "/", "", "/dev/null"])
def test_what_is_no_disk_is_answered_with_the_disks_that_are_there(run: Any, path: str) -> None:
    result = run(path)
    assert isinstance(result.exception, NotFound)
    assert "disks" in str(result.exception)


def test_ctrl_c_leaves_nothing_behind(raw: Loop, mounted: Path) -> None:
    before, free = sorted(os.listdir(mounted)), os.statvfs(mounted).f_bfree

    def press(_: float) -> None:
        raise KeyboardInterrupt

    def measured() -> None:
        with place(disks[raw.number], disks, 32 * MIB) as (opened, most):
            measure(fill(opened, most, 600.0, lambda _: None), WORKS[5], 600.0, press)

    disks = discover()
    with pytest.raises(KeyboardInterrupt):
        measured()
    assert sorted(os.listdir(mounted)) == before
    folder = os.open(mounted, os.O_RDONLY)
    os.fsync(folder)  # ext4 gives blocks back with its journal
    os.close(folder)
    assert os.statvfs(mounted).f_bfree >= free
