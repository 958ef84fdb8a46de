"""Values as the files spell them: exact texts on v1, v2 and hybrid trees, and what cannot be written."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Denied, Unsupported
from j10ce.host.mounts import IN_USE, Hierarchies
from j10ce.kernel import file
from j10ce.kernel.cgroup import v1 as cgroup1
from j10ce.kernel.cgroup import v2
from j10ce.kernel.cgroup.files import CgroupFiles, version
from j10ce.model.knob import CGROUP_KNOBS, Setting, Value, group
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

WEB = Handle("web")


def setting(knob: str) -> Setting:
    return Setting(group("web"), knob)


def backend(root: Path, v: int, **files: str) -> CgroupFiles:
    v1 = IN_USE if v == 1 else ()
    tree = {**(fresh(1) if v == 1 else {}), "web": fresh(1 if v == 1 else 2, **files)}
    return CgroupFiles(cgroup_tree(root, tree, v1=v1))


def text(root: Path, v: int, name: str) -> str:
    return (root / (name.split(".")[0] if v == 1 else "unified") / "web" / name).read_text().strip()


@pytest.mark.parametrize(
    ("v", "knob", "value", "name", "spelled"),
    [
        (2, "cpu.weight", 1024.0, "cpu.weight", "100"),
        (2, "cpu.weight", 2.0, "cpu.weight", "1"),
        (2, "cpu.weight", 262144.0, "cpu.weight", "10000"),
        (1, "cpu.weight", 262144.0, "cpu.shares", "262144"),
        (1, "cpu.weight", 1.0, "cpu.shares", "2"),
        (2, "cpu.max", 50_000.4, "cpu.max", "50000 100000"),
        (2, "cpu.max", 3.0, "cpu.max", "1000 100000"),
        (2, "cpu.max", math.inf, "cpu.max", "max 100000"),
        (1, "cpu.max", 50_000.0, "cpu.cfs_quota_us", "50000"),
        (1, "cpu.max", math.inf, "cpu.cfs_quota_us", "-1"),
        (2, "cpuset.cpus", frozenset({0, 1, 3}), "cpuset.cpus", "0-1,3"),
        (2, "cpuset.cpus", frozenset(), "cpuset.cpus", ""),
        (1, "cpuset.cpus", frozenset(), "cpuset.cpus", "0-3"),
        (2, "memory.max", 8191.0, "memory.max", "4096"),
        (2, "memory.low", math.inf, "memory.low", "max"),
        (1, "memory.max", math.inf, "memory.limit_in_bytes", "-1"),
        (2, "memory.oom.group", 1.0, "memory.oom.group", "1"),
    ],
)
def test_a_value_is_spelled(tmp_path: Path, v: int, knob: str, value: Value, name: str, spelled: str) -> None:
    assert isinstance(backend(tmp_path, v).write(setting(knob), value, WEB), Applied)
    assert text(tmp_path, v, name) == spelled


@pytest.mark.parametrize(
    ("v", "files", "value"),
    [
        (2, {"cpu__max": "25000 50000"}, 50_000.0),
        (2, {"cpu__max": "max 50000"}, math.inf),
        (1, {"cpu__cfs_quota_us": "25000", "cpu__cfs_period_us": "50000"}, 50_000.0),
        (1, {"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "50000"}, math.inf),
    ],
)
def test_a_foreign_period_is_understood_and_given_back(
    tmp_path: Path, v: int, files: dict[str, str], value: float
) -> None:
    back_end = backend(tmp_path, v, **files)
    assert back_end.read(setting("cpu.max"), WEB) == value
    saved = back_end.save(setting("cpu.max"), WEB)
    assert saved is not None
    back_end.write(setting("cpu.max"), 20_000.0, WEB)
    back_end.restore(setting("cpu.max"), saved, WEB)
    for name, before in files.items():
        assert text(tmp_path, v, name.replace("__", ".")) == before


@pytest.mark.parametrize(("v", "burst"), [(1, "cpu.cfs_burst_us"), (2, "cpu.max.burst")])
def test_a_burst_above_the_quota_is_cut_with_it(tmp_path: Path, v: int, burst: str) -> None:
    files = backend(tmp_path, v, **{burst.replace(".", "__"): "80000"})
    files.write(setting("cpu.max"), 50_000.0, WEB)
    assert text(tmp_path, v, burst) == "50000"


def test_v1_raises_the_limit_with_swap_only_where_it_must(tmp_path: Path) -> None:
    files = backend(tmp_path, 1, memory__memsw__limit_in_bytes="8192", memory__limit_in_bytes="8192")
    saved = files.save(setting("memory.max"), WEB)
    assert saved is not None
    files.write(setting("memory.max"), 4096.0, WEB)
    assert text(tmp_path, 1, "memory.memsw.limit_in_bytes") == "8192"
    files.write(setting("memory.max"), 16384.0, WEB)
    assert text(tmp_path, 1, "memory.memsw.limit_in_bytes") == "16384"
    files.restore(setting("memory.max"), saved, WEB)
    assert text(tmp_path, 1, "memory.memsw.limit_in_bytes") == text(tmp_path, 1, "memory.limit_in_bytes") == "8192"


@pytest.mark.parametrize(("before", "after"), [("", "7"), ("0-3", "")], ids=["its CPUs were offline", "it had CPUs"])
def test_on_v1_processes_come_back_into_a_set_that_had_lost_all_its_cpus(
    tmp_path: Path, before: str, after: str
) -> None:
    """The kernel has moved them to the group above, in the hierarchy of cpusets alone."""
    files = backend(tmp_path, 1, **{"cpuset.cpus": before})
    (tmp_path / "cpu/web/cgroup.procs").write_text("7\n")
    assert files.write(setting("cpuset.cpus"), frozenset({1}), WEB) == Applied(frozenset({1}))
    assert text(tmp_path, 1, "cpuset.cpus") == "1"
    assert (tmp_path / "cpuset/web/cgroup.procs").read_text().strip() == after


def test_hybrid_writes_each_knob_where_its_controller_is(tmp_path: Path) -> None:
    files = {**fresh(1), **fresh(2)}
    hierarchies = CgroupFiles(cgroup_tree(tmp_path, {**fresh(1), "web": files}, v1=("cpu", "cpuset")))
    hierarchies.write(setting("cpu.weight"), 512.0, WEB)
    hierarchies.write(setting("memory.low"), 4096.0, WEB)
    assert (tmp_path / "cpu/web/cpu.shares").read_text() == "512\n"
    assert (tmp_path / "unified/web/memory.low").read_text() == "4096\n"
    assert {s.via for s in hierarchies.knobs().values() if s.ok} == {"cgroup1", "cgroup2"}


def test_an_adopted_cgroup_may_lie_elsewhere_in_each_hierarchy(tmp_path: Path) -> None:
    files = backend(tmp_path, 1)
    at = Handle("absent", paths={"cpu": "web"})
    assert files.read(setting("cpu.weight"), at) == 1024.0
    assert files.read(setting("memory.max"), at) is None


def test_a_kernel_without_a_knob_says_which_one_has_it(tmp_path: Path) -> None:
    bare = CgroupFiles(cgroup_tree(tmp_path, {}), release="5.10.0-30-amd64")
    assert not bare.knobs()["cpu.idle"].ok
    assert bare.knobs()["cpu.idle"].needs == "kernel ≥ 5.15"
    assert bare.knobs()["memory.low"].ok


def test_a_cgroup_shows_better_than_a_version_what_the_kernel_has(tmp_path: Path) -> None:
    files = {k: v for k, v in fresh(2).items() if k != "cpu.idle"}
    assert not CgroupFiles(cgroup_tree(tmp_path, {"web": files}), release="6.1.0").knobs()["cpu.idle"].ok


def test_an_unmounted_controller_is_unsupported_not_an_error(tmp_path: Path) -> None:
    hierarchies = CgroupFiles(Hierarchies.discover(""))
    assert not any(s.ok for s in hierarchies.knobs().values())
    with pytest.raises(Unsupported):
        hierarchies.read(setting("cpu.weight"), WEB)


@pytest.mark.parametrize("table", [cgroup1.TABLE, v2.TABLE], ids=["v1", "v2"])
def test_both_tables_have_every_knob(table: dict[str, object]) -> None:
    assert table.keys() == CGROUP_KNOBS.keys()


@given(knob=st.sampled_from(sorted(CGROUP_KNOBS)), value=st.floats(min_value=0, max_value=1e15) | st.just(math.inf))
@pytest.mark.parametrize("table", [cgroup1.TABLE, v2.TABLE], ids=["v1", "v2"])
def test_quantise_is_idempotent(table: dict[str, cgroup1.Spelling], knob: str, value: float) -> None:
    v: Value = frozenset({int(value) % 64}) if knob == "cpuset.cpus" and value < math.inf else value
    if knob == "cpu.weight" and value == math.inf:
        return
    once = table[knob].quantise(v)
    assert table[knob].quantise(once) == once


@pytest.mark.parametrize("release", ["6.1.0-54-amd64", "6.1", "6.1-rc1"])
def test_a_release_is_a_version(release: str) -> None:
    assert version(release) == (6, 1)


# ---------------------------------------------------------------- one file


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    os.symlink(tmp_path / "secret", tmp_path / "cpu.weight")
    assert isinstance(file.write(str(tmp_path / "cpu.weight"), "1"), Refused)
    assert (tmp_path / "secret").read_text() == "x"
    with pytest.raises(Denied):
        file.read(str(tmp_path / "cpu.weight"))


def test_a_missing_file_is_a_refusal_and_a_missing_cgroup_is_gone(tmp_path: Path) -> None:
    assert isinstance(file.write(str(tmp_path / "cpu.weight"), "1"), Refused)
    assert file.write(str(tmp_path / "gone" / "cpu.weight"), "1") == Gone()
    assert file.read(str(tmp_path / "gone" / "cpu.weight")) is None


def test_a_full_device_refuses_with_the_value() -> None:
    result = file.write("/dev/full", "50000 100000")
    assert isinstance(result, Refused)
    assert result.reason.startswith("cannot write full = '50000 100000' to /dev: kernel said ENOSPC")


def test_several_files_are_written_all_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    result = file.settle(str(tmp_path), {"a": "new", "missing": "x"})
    assert isinstance(result, Refused)
    assert (tmp_path / "a").read_text().strip() == "old"
