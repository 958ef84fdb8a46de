"""Kernel parameters: those of a host that a pod has beside its own, which are read-only."""

from __future__ import annotations

from pathlib import Path

from j10ce.kernel.node.sysctl import Sysctls
from j10ce.model.knob import NODE, Setting
from j10ce.model.plan import Applied
from j10ce.model.workload import Handle

FACTOR = Setting(NODE, "vm.watermark_scale_factor")
HERE = Handle("")


def put(folder: Path, value: str) -> Path:
    file = folder / "vm/watermark_scale_factor"
    file.parent.mkdir(parents=True)
    file.write_text(value)
    return file


def test_a_parameter_of_the_host_goes_before_that_of_the_pod(tmp_path: Path) -> None:
    own, of_host = put(tmp_path / "own", "10"), put(tmp_path / "host", "10")
    sysctls = Sysctls(tmp_path / "own", tmp_path / "host")
    assert sysctls.knobs()[FACTOR.knob].ok
    assert sysctls.write(FACTOR, 50, HERE) == Applied(50.0)
    assert (own.read_text().strip(), of_host.read_text().strip()) == ("10", "50")


def test_without_a_part_of_the_host_the_own_one_counts(tmp_path: Path) -> None:
    own = put(tmp_path / "own", "10")
    assert Sysctls(tmp_path / "own", tmp_path / "none").write(FACTOR, 50, HERE) == Applied(50.0)
    assert own.read_text().strip() == "50"


def test_a_kernel_of_a_vendor_has_switches_beside_and_one_that_lacks_them_says_so(tmp_path: Path) -> None:
    reaper = tmp_path / "kernel/mm/memcg_reaper/reap_background"
    reaper.parent.mkdir(parents=True)
    reaper.write_text("0\n")
    sysctls = Sysctls(tmp_path, tmp_path / "none", tmp_path / "kernel")
    knob = "mm.memcg_reaper.reap_background"
    assert sysctls.write(Setting(NODE, knob), 1.0, HERE) == Applied(1.0)
    assert reaper.read_text() == "1\n"
    missing = sysctls.knobs()["kernel.sched_group_identity_enabled"]
    assert "Anolis OS" in missing.needs
    assert not missing.ok
