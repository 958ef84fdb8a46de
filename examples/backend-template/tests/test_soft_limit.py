import math
from pathlib import Path

import pytest
from j10ce_soft_limit import FILE, KNOB, UNLIMITED, SoftLimit

from j10ce.model.workload import Handle
from j10ce.testing.conformance_plugins import PluginBackendConformance, Trial


class TestSoftLimit(PluginBackendConformance):
    @pytest.fixture
    def trial(self, tmp_path: Path) -> Trial:
        for group in (tmp_path, tmp_path / "web"):
            group.mkdir(exist_ok=True)
            (group / FILE).write_text(f"{UNLIMITED}\n")
        return Trial(SoftLimit(tmp_path), Handle("web"), Handle("gone"), {KNOB: (float(1 << 20), 5000.0, math.inf)})


def test_a_machine_without_it_says_what_it_needs(tmp_path: Path) -> None:
    assert not SoftLimit(tmp_path).knobs()[KNOB].ok
