"""Knobs of vendors' kernels: written where their files are, and said to be missing everywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.vendor import VENDOR
from j10ce.kernel.probe import examine
from j10ce.model.knob import CGROUP_KNOBS, KNOBS, OF_VENDORS, Setting, group
from j10ce.model.plan import Applied
from j10ce.model.workload import Handle
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

RARE = [name for name, k in CGROUP_KNOBS.items() if k.rare]
FILES = {name: f"{KNOBS[name].default:.0f}" for name in RARE}
V1 = ("cpu", "cpuacct", "cpuset", "memory")


def backend(folder: Path, v1: bool, files: dict[str, str]) -> CgroupFiles:
    here = {**fresh(1 if v1 else 2), **files}
    tree = {**(here if v1 else {}), "web": here}  # the root of v1 has the files, too
    return CgroupFiles(cgroup_tree(folder, tree, v1=V1 if v1 else ()), release="5.10.134-16.3.an8")


def test_each_has_a_spelling() -> None:
    assert {*VENDOR} == {*RARE}


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
@pytest.mark.parametrize(
    ("knob", "value", "text"),
    [
        ("memory.wmark_ratio", 95.0, "95"),
        ("memory.wmark_scale_factor", 20.0, "20"),
        ("memory.wmark_min_adj", -25.0, "-25"),
        ("memory.wmark_min_adj", -1.0, "-1"),
        ("memory.priority", 12.0, "12"),
        ("memory.use_priority_oom", 1.0, "1"),
        ("memory.pagecache_limit.size", float(1 << 30), "1073741824"),
        ("memory.pagecache_limit.sync", 1.0, "1"),
        ("memory.pagecache_limit.enable", 1.0, "1"),
    ],
)
def test_a_kernel_that_has_the_file_takes_the_value(
    tmp_path: Path, v1: bool, knob: str, value: float, text: str
) -> None:
    files, at = backend(tmp_path, v1, FILES), Handle("web")
    setting = Setting(group("web"), knob)
    assert files.knobs()[knob].ok
    assert files.read(setting, at) == KNOBS[knob].default
    saved = files.save(setting, at)
    assert saved is not None
    assert files.write(setting, value, at) == Applied(value)
    assert (tmp_path / ("memory" if v1 else "unified") / "web" / knob).read_text() == f"{text}\n"
    assert files.restore(setting, saved, at) == Applied(KNOBS[knob].default)


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
def test_a_mainline_kernel_lacks_them_whatever_its_number(tmp_path: Path, v1: bool) -> None:
    offered = backend(tmp_path, v1, {}).knobs()
    assert {name: (offered[name].ok, offered[name].needs) for name in RARE} == dict.fromkeys(RARE, (False, OF_VENDORS))


def test_the_doctor_has_one_finding_for_all_that_are_missing(tmp_path: Path) -> None:
    some = {name: FILES[name] for name in RARE if "wmark" in name}
    here = {**fresh(1), **some}
    features = {c.feature: c for c in examine(cgroup_tree(tmp_path, here, v1=V1), proc=str(tmp_path))}
    assert {name for name in RARE if name in features} == {*some}
    assert "pagecache_limit.size" in features["knobs of vendors"].needs
    assert "memory.wmark" not in features["knobs of vendors"].needs
    assert not features["reclaim"].ok
    assert "5.19" in features["reclaim"].needs
