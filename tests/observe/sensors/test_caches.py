"""What groups of resctrl hold of the cache and move to memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.host.files import Files
from j10ce.model.knob import resctrl
from j10ce.observe.sensor import OffCgroups, Sample
from j10ce.observe.sensors.caches import LOOK_S, MOST_GROUPS, CacheSensor


def count(root: Path, group: str, cache: str, *, held: object, moved: object) -> None:
    folder = root / group / "mon_data" / cache
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "llc_occupancy").write_text(f"{held}\n")
    (folder / "mbm_total_bytes").write_text(f"{moved}\n")


@pytest.fixture
def sensor(tmp_path: Path) -> CacheSensor:
    return CacheSensor(Files(0), str(tmp_path))


def test_caches_are_summed_and_counters_become_rates(tmp_path: Path, sensor: CacheSensor) -> None:
    for cache in ("mon_L3_00", "mon_L3_01"):
        count(tmp_path, "be", cache, held=100, moved=1000)
    assert list(sensor.sample(10.0, ())) == [Sample(resctrl("be"), "cache.occupancy", 200.0)]
    count(tmp_path, "be", "mon_L3_01", held=50, moved=5000)
    assert list(sensor.sample(12.0, ())) == [
        Sample(resctrl("be"), "cache.occupancy", 150.0),
        Sample(resctrl("be"), "memory.bandwidth", 2000.0),
    ]
    assert isinstance(sensor, OffCgroups)
    assert list(sensor.targets) == [resctrl("be")]


def test_what_a_cpu_cannot_count_yields_nothing(tmp_path: Path, sensor: CacheSensor) -> None:
    count(tmp_path, "be", "mon_L3_00", held="Unavailable", moved="Error")
    (tmp_path / "ls" / "mon_data").mkdir(parents=True)
    assert list(sensor.sample(10.0, ())) == []
    assert list(sensor.sample(11.0, ())) == []


def test_a_machine_without_resctrl_yields_nothing(tmp_path: Path) -> None:
    assert list(CacheSensor(Files(0), str(tmp_path / "none")).sample(1.0, ())) == []


def test_groups_are_looked_for_again_after_a_while_and_no_more_than_some(tmp_path: Path, sensor: CacheSensor) -> None:
    assert list(sensor.sample(0.0, ())) == []
    for number in range(MOST_GROUPS + 5):
        count(tmp_path, f"g{number:03}", "mon_L3_00", held=1, moved=1)
    assert list(sensor.sample(1.0, ())) == []
    assert len(list(sensor.sample(LOOK_S, ()))) == MOST_GROUPS
