"""Calibrations stay until there is another of the same disk; a file that cannot be used costs nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Corrupt
from j10ce.model.machine.calibration import Calibration, Speed
from j10ce.model.machine.disk import Disk
from j10ce.observe.calibrations import Calibrations

SDA = Disk("8:0", "sda", serial="S3X", size=1 << 30, managed=True)
SDB = Disk("8:16", "sdb", size=2 << 30, managed=True)
SLOW, FAST = Speed(1_000_000, 100, 50, 9_000), Speed(500_000_000, 50_000, 40_000, 90)


def measured(disk: Disk, speed: Speed) -> Calibration:
    return Calibration(disk.name, disk.size, speed, speed)


def test_each_disk_keeps_its_own(tmp_path: Path) -> None:
    calibrations = Calibrations(tmp_path)
    calibrations.keep(SDA, measured(SDA, SLOW))
    calibrations.keep(SDB, measured(SDB, SLOW))
    calibrations.keep(SDA, measured(SDA, FAST))
    seen = Calibrations(tmp_path).seen({"8:0": SDA, "8:16": SDB})
    assert (seen["8:0"].read_bps, seen["8:16"].read_bps) == (FAST.bps, SLOW.bps)


def test_a_disk_is_known_by_its_serial_number_whatever_it_is_called(tmp_path: Path) -> None:
    Calibrations(tmp_path).keep(SDA, measured(SDA, FAST))
    moved = Disk("8:32", "sdc", serial="S3X", size=SDA.size, managed=True)
    assert Calibrations(tmp_path).seen({"8:32": moved})["8:32"].calibrated


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    calibrations = Calibrations(tmp_path / "state")
    calibrations.keep(SDA, measured(SDA, FAST))
    assert calibrations.path.stat().st_mode & 0o777 == 0o600


def test_an_agent_notices_another_file_and_nothing_else(tmp_path: Path) -> None:
    calibrations = Calibrations(tmp_path)
    assert not calibrations.changed()
    Calibrations(tmp_path).keep(SDA, measured(SDA, SLOW))
    assert calibrations.changed()
    assert calibrations.seen({"8:0": SDA})["8:0"].calibrated
    assert not calibrations.changed()
    calibrations.path.unlink()
    assert calibrations.changed()
    assert not calibrations.seen({"8:0": SDA})["8:0"].calibrated


def test_a_file_of_a_later_release_counts_as_none(tmp_path: Path) -> None:
    calibrations = Calibrations(tmp_path)
    calibrations.path.write_text('{"format": 2, "disks": {}}')
    assert calibrations.seen({"8:0": SDA}) == {"8:0": SDA}
    with pytest.raises(Corrupt, match="format 2"):
        calibrations.load()


@given(text=st.binary(max_size=200))
def test_no_file_keeps_an_agent_from_its_disks(text: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    calibrations = Calibrations(tmp_path_factory.mktemp("state"))
    calibrations.path.write_bytes(text)
    assert calibrations.seen({"8:0": SDA}) == {"8:0": SDA}
    calibrations.keep(SDA, measured(SDA, FAST))
    assert calibrations.seen({"8:0": SDA})["8:0"].calibrated
