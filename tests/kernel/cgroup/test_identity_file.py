"""Group identities in the files of a vendor's kernel, on both versions; mainline lacks them, whatever its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.model.knob import Setting, group
from j10ce.model.plan import Applied
from j10ce.model.workload import Handle
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

KNOB = "cpu.bvt_warp_ns"
SETTING, WEB = Setting(group("web"), KNOB), Handle("web")


def backend(folder: Path, v1: bool, files: dict[str, str]) -> CgroupFiles:
    here = {**fresh(1 if v1 else 2), **files}
    tree = {**(here if v1 else {}), "web": here}
    return CgroupFiles(cgroup_tree(folder, tree, v1=("cpu", "cpuacct", "cpuset", "memory") if v1 else ()))


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
def test_an_identity_is_written_where_its_file_is_and_restored(tmp_path: Path, v1: bool) -> None:
    files = backend(tmp_path, v1, {KNOB: "0"})
    assert files.knobs()[KNOB].ok
    saved = files.save(SETTING, WEB)
    assert saved is not None
    assert files.write(SETTING, -1.0, WEB) == Applied(-1.0)
    assert (tmp_path / ("cpu" if v1 else "unified") / "web" / KNOB).read_text() == "-1\n"
    assert files.restore(SETTING, saved, WEB) == Applied(0.0)


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
def test_a_mainline_kernel_lacks_it(tmp_path: Path, v1: bool) -> None:
    support = backend(tmp_path, v1, {}).knobs()[KNOB]
    assert not support.ok
    assert support.instead == "cpu.idle and weights"
