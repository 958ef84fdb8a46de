"""The doctor's findings: each says whether it works, and if not, what it needs and what is done instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.cli.host.doctor import AREAS
from j10ce.host.mounts import IN_USE, Hierarchies
from j10ce.kernel.probe import examine
from j10ce.model.kinds import Capability
from j10ce.model.knob import CGROUP_KNOBS
from j10ce.testing.cgroup_tree import cgroup_tree, fresh


def findings(root: Path, hierarchies: Hierarchies, swaps: str = "") -> dict[str, Capability]:
    proc = root / "proc"
    (proc / "pressure").mkdir(parents=True)
    (proc / "pressure/cpu").write_text("")
    (proc / "swaps").write_text(f"Filename Type Size Used Priority\n{swaps}")
    return {c.feature: c for c in examine(hierarchies, proc=str(proc), run=str(root / "run"))}


@pytest.mark.parametrize("v1", [(), IN_USE, ("cpu", "cpuset")], ids=["v2", "v1", "hybrid"])
def test_every_knob_and_feature_has_a_finding(tmp_path: Path, v1: tuple[str, ...]) -> None:
    capabilities = findings(tmp_path, cgroup_tree(tmp_path / "cg", {"web": fresh(2)}, v1=v1))
    assert capabilities.keys() >= {name for name, knob in CGROUP_KNOBS.items() if not knob.rare} | {
        "knobs of vendors",
        "reclaim",
        "cgroup",
        "privileges",
        "psi",
        "psi.cgroup",
        "psi.triggers",
        "swap",
        "systemd",
        "tasks",
        "sched.cookie",
        "resctrl.l3",
        "resctrl.mb",
        "resctrl.group",
    }
    assert all(c.needs for c in capabilities.values() if not c.ok)


def test_threads_outside_our_namespace_and_rights_that_are_missing_are_named(tmp_path: Path) -> None:
    hierarchies = cgroup_tree(tmp_path / "cg", {"web": fresh(2, cgroup__procs="0\n")})
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "status").write_text("CapEff:\t0000000000000000\n")
    needs = {c.feature: c for c in examine(hierarchies, proc=str(tmp_path / "proc"), run=str(tmp_path))}["tasks"].needs
    assert needs == "the PID namespace of the host (hostPID) and CAP_SYS_PTRACE"


def test_v1_lacks_memory_floors_and_says_so(tmp_path: Path) -> None:
    capabilities = findings(tmp_path, cgroup_tree(tmp_path / "cg", fresh(1), v1=IN_USE))
    assert not capabilities["memory.low"].ok
    assert "cgroup v2" in capabilities["memory.low"].needs
    assert capabilities["memory.low"].instead
    assert not capabilities["psi.cgroup"].ok


def test_a_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    hierarchies = cgroup_tree(tmp_path / "cg", {"web": fresh(2)})
    before = sorted(tmp_path.rglob("*"))
    examine(hierarchies, proc=str(tmp_path), run=str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("v1", [(), IN_USE], ids=["v2", "v1"])
def test_what_a_killed_probe_left_behind_is_removed_by_the_next(tmp_path: Path, v1: tuple[str, ...]) -> None:
    """The process of the second one lives: it is at work."""
    left, at_work = "j10ce-probe-4194305", "j10ce-probe-1"  # no process has a number beyond 4194304
    hierarchies = cgroup_tree(tmp_path / "cg", {"web": fresh(2)}, v1=v1)
    for mount in hierarchies.in_use().values():
        for name in (left, at_work):
            (Path(mount.path) / name).mkdir()
    examine(hierarchies, proc=str(tmp_path), run=str(tmp_path))
    assert {p.name for p in (tmp_path / "cg").rglob("j10ce-probe-*")} == {at_work}


def test_a_machine_without_cgroups_is_examined_all_the_same(tmp_path: Path) -> None:
    capabilities = findings(tmp_path, Hierarchies.discover(""))
    assert not capabilities["cgroup"].ok
    assert "cpu, cpuset, memory" in capabilities["cgroup"].needs
    assert not capabilities["privileges"].ok


def test_swap_and_systemd_are_found(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    capabilities = findings(tmp_path, Hierarchies.discover(""), swaps="/swap file 2097148 0 -2\n")
    assert capabilities["swap"].via == "2047 MiB"
    assert capabilities["systemd"].ok


def test_a_mount_option_spreads_protection_downwards(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory cpuset")
    mounted = f"1 1 0:2 / {tmp_path} rw - cgroup2 cgroup2 rw,memory_recursiveprot\n"
    assert findings(tmp_path / "x", Hierarchies.discover(mounted))["memory_recursiveprot"].ok


def test_both_ways_of_a_link_are_among_what_doctor_says_of_the_network(tmp_path: Path) -> None:
    concerning = [
        c
        for c in findings(tmp_path, cgroup_tree(tmp_path / "cg", fresh(2))).values()
        if c.feature.startswith(AREAS["network"])
    ]
    assert {c.feature for c in concerning} >= {"net.egress", "net.ingress"}
    assert all(c.ok or (c.needs and c.instead) for c in concerning if c.feature in ("net.egress", "net.ingress"))
