"""What was measured of a disk becomes what floors are reckoned against, and what an I/O costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.kernel.disk.cost import MODEL, QOS, canonical
from j10ce.kernel.disk.lines import pairs
from j10ce.model.machine.calibration import Calibration, Speed, known, model, qos
from j10ce.model.machine.disk import Disk
from j10ce.testing import build

READ, WRITE = Speed(400_000_000, 30_000, 20_000, 800), Speed(300_000_000, 20_000, 10_000, 1_500)
MEASURED = Calibration("sda", 1 << 30, READ, WRITE)
SDA = Disk("8:0", "sda", serial="S3X", managed=True, size=1 << 30, queued=True)


def test_floors_are_reckoned_against_what_was_measured() -> None:
    sda = known(SDA, MEASURED)
    capacity = build.node(disks={"8:0": sda}).capacity
    assert (capacity.disk_read, capacity.disk_write) == (400_000_000, 300_000_000)
    assert (sda.read_iops, sda.write_iops) == (20_000, 10_000)


@pytest.mark.parametrize(
    "disk",
    [
        pytest.param(replace(SDA, size=2 << 30), id="another disk with its serial number"),
        pytest.param(replace(SDA, size=0), id="one that says no size"),
    ],
)
def test_what_was_measured_of_another_disk_says_nothing(disk: Disk) -> None:
    assert known(disk, MEASURED) is disk
    assert known(disk, None) is disk


@pytest.mark.parametrize(
    ("disk", "calibration"),
    [
        pytest.param(replace(SDA, queued=False), MEASURED, id="no queue of requests"),
        pytest.param(replace(SDA, below=("8:16",)), MEASURED, id="made of another"),
        pytest.param(SDA, replace(MEASURED, write=Speed()), id="only read"),
    ],
)
def test_io_cost_has_a_model_only_where_it_divides(disk: Disk, calibration: Calibration) -> None:
    assert (known(disk, calibration).model, known(disk, calibration).qos) == ("", "")


def test_a_disk_that_was_only_read_waits_for_a_word_about_writes() -> None:
    assert not known(SDA, replace(MEASURED, write=Speed())).calibrated


def test_the_model_is_spelled_as_the_kernel_prints_it() -> None:
    sda = known(SDA, MEASURED)
    assert sda.model == canonical(MODEL, sda.model)
    assert sda.qos == canonical(QOS, sda.qos)
    assert pairs(sda.model)["rrandiops"] == "20000"
    assert pairs(sda.qos)["rlat"] == "3200"


@given(st.integers(0, 1 << 60))
def test_no_disk_is_so_slow_or_fast_that_its_latency_is_out_of_range(slow_us: int) -> None:
    slow = replace(MEASURED, read=replace(READ, slow_us=slow_us))
    assert 100 <= int(pairs(qos(slow))["rlat"]) <= 1_000_000
    assert "nan" not in model(slow)
