"""Whether this machine can have real-time workloads, and what it lacks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from j10ce.host.mounts import IN_USE
from j10ce.kernel.realtime.nets import budgets, support
from j10ce.testing.cgroup_tree import cgroup_tree, fresh

ALL = "CapEff:\t000001ffffffffff\n"


def machine(root: Path, release: str = "6.8.0", runtime: str = "950000", caps: str = ALL, cmdline: str = "") -> str:
    proc = root / "proc"
    for name, text in {
        "self/status": caps,
        "cmdline": cmdline,
        "sys/kernel/sched_rt_runtime_us": runtime,
        "sys/kernel/sched_rt_period_us": "1000000",
        "sys/kernel/osrelease": release,
    }.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(text)
    return str(proc)


def needs(root: Path, proc: str, *v1: str) -> str:
    return support(cgroup_tree(root / "cg", {"web": fresh(2)}, v1=v1), proc, str(root / "boot")).needs


def test_an_ordinary_machine_can(tmp_path: Path) -> None:
    assert needs(tmp_path, machine(tmp_path)) == ""


def test_without_the_right_it_cannot(tmp_path: Path) -> None:
    assert "CAP_SYS_NICE" in needs(tmp_path, machine(tmp_path, caps="CapEff:\t0000000000000000\n"))


@pytest.mark.parametrize(
    ("release", "runtime", "ok"),
    [
        pytest.param("6.8.0", "-1", False, id="nothing stops a runaway"),
        pytest.param("6.8.0", "1000000", False, id="all of the time"),
        pytest.param("6.12.3", "-1", True, id="the fair server does"),
        pytest.param("5.4.0", "950000", True, id="throttling does"),
    ],
)
def test_there_must_be_a_net_of_the_kernel(tmp_path: Path, release: str, runtime: str, ok: bool) -> None:
    assert (needs(tmp_path, machine(tmp_path, release, runtime)) == "") is ok


@pytest.mark.parametrize(
    ("options", "cmdline", "ok"),
    [
        pytest.param("CONFIG_RT_GROUP_SCHED=y\n", "quiet", False, id="groups without budgets"),
        pytest.param("CONFIG_RT_GROUP_SCHED=y\n", "quiet rt_group_sched=0", True, id="switched off"),
        pytest.param(
            "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n", "", True, id="off by default"
        ),
        pytest.param("# CONFIG_RT_GROUP_SCHED is not set\n", "", True, id="not built in"),
    ],
)
def test_on_v2_group_scheduling_stands_in_the_way(tmp_path: Path, options: str, cmdline: str, ok: bool) -> None:
    proc = machine(tmp_path, cmdline=cmdline)
    (Path(proc) / "config.gz").write_bytes(gzip.compress(options.encode()))
    said = needs(tmp_path, proc)
    assert (said == "") is ok
    assert ok or "rt_group_sched=0" in said


def test_the_configuration_may_lie_beside_the_kernel(tmp_path: Path) -> None:
    proc = machine(tmp_path, release="6.8.0")
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "config-6.8.0").write_text("CONFIG_RT_GROUP_SCHED=y\n")
    assert "rt_group_sched=0" in needs(tmp_path, proc)


def test_v1_has_budgets_where_the_kernel_has_the_file(tmp_path: Path) -> None:
    tree = {"cpu.rt_runtime_us": "950000", "cpu.rt_period_us": "1000000"}
    assert budgets(cgroup_tree(tmp_path / "with", tree, v1=IN_USE)).ok
    without = budgets(cgroup_tree(tmp_path / "without", fresh(1), v1=IN_USE))
    assert (without.ok, "CONFIG_RT_GROUP_SCHED" in without.needs) == (False, True)
