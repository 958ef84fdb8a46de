"""`doctor disk`: which way keeps floors on each disk, and what a better one needs."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from msgspec.structs import replace

from j10ce.control.disk.ways import CAPS, WEIGHTS, listed
from j10ce.model.machine.disk import Disk

ALL = (*CAPS, *WEIGHTS)
SDA = Disk("8:0", "sda", managed=True, queued=True, read_bps=1 << 20, write_bps=1 << 19, model="m", qos="q")
VOLUME = Disk("252:0", "dm-0", managed=True, below=("8:0",))


@pytest.mark.parametrize(
    ("disk", "supported", "way", "needs"),
    [
        pytest.param(SDA, ALL, "weights", "", id="the best"),
        pytest.param(SDA, CAPS, "caps on others", "cgroup v2 with io.cost", id="no io.cost"),
        pytest.param(replace(SDA, read_bps=0, model=""), ALL, "none", "calibrate /dev/sda", id="not measured"),
        pytest.param(replace(SDA, model=""), ALL, "caps on others", "a model of sda", id="an operator's word"),
        pytest.param(replace(SDA, queued=False), ALL, "caps on others", "a queue of requests", id="no queue"),
        pytest.param(SDA, (), "none", "cgroup v2 with io.cost", id="no controller"),
        pytest.param(replace(SDA, managed=False), ALL, "none", "", id="not managed"),
    ],
)
def test_the_way_of_a_disk_says_what_a_better_one_needs(
    disk: Disk, supported: Collection[str], way: str, needs: str
) -> None:
    (row,) = listed({disk.number: disk}, supported)
    assert row["floors"] == way
    assert needs in " ".join(row["needs"])
    assert bool(needs) == bool(row["needs"])


def test_a_volume_is_as_good_as_what_it_is_made_of() -> None:
    volume, sda = listed({"252:0": VOLUME, "8:0": SDA}, ALL)
    assert (volume["floors"], sda["floors"]) == ("weights", "weights")
    assert volume["capacity"] == "not measured"
