from pathlib import Path

import pytest
from j10ce_heat import Heat

from j10ce.testing.conformance_plugins import SensorConformance


def machine(root: Path, *zones: str) -> Heat:
    for n, text in enumerate(zones):
        (root / f"thermal_zone{n}").mkdir()
        (root / f"thermal_zone{n}/temp").write_text(f"{text}\n")
    return Heat(root)


class TestHeat(SensorConformance):
    @pytest.fixture
    def sensor(self, tmp_path: Path) -> Heat:
        return machine(tmp_path, "41000", "55500")


def test_the_hottest_zone_counts(tmp_path: Path) -> None:
    assert [value for _, _, value in machine(tmp_path, "41000", "55500").sample(1.0, [])] == [55.5]


def test_a_machine_that_tells_no_temperature_has_none(tmp_path: Path) -> None:
    assert list(machine(tmp_path).sample(1.0, [])) == []
