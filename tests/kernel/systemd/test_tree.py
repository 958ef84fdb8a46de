"""Slices, scopes that wait for their first process, and what is never touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.errors import Denied, NotFound
from j10ce.model.knob import Setting, TargetId, group, workload
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from j10ce.testing.fake_systemd import FakeSystemd
from tests.kernel.systemd.systemd_host import Host

WEB = workload("default", "web")


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def make(host: Host, tier: str = "sensitive", name: str = "web") -> Handle:
    """Top, tier and scope, as a plan makes them."""
    for at in (host.tree.path_for("", "", ""), host.tree.path_for(tier, "", "")):
        assert host.tree.make(group(at.path), at) == Applied(at.path)
    at = host.tree.path_for(tier, "default", name)
    assert host.tree.make(workload("default", name), Handle(at.path)) == Applied(at.path)
    return at


def test_a_workload_lives_in_a_scope_of_its_tiers_slice(host: Host) -> None:
    at = host.tree.path_for("sensitive", "default", "web")
    assert at == Handle("j10ce.slice/j10ce-sensitive.slice/j10ce-default-web.scope", "j10ce-default-web.scope")


def test_a_users_tree_is_below_the_users_manager(tmp_path: Path) -> None:
    host = Host(FakeSystemd(tmp_path, control_group="user.slice/user@7.service"), user=True)
    at = make(host)
    assert host.tree.name == "systemd-user"
    assert at.path == "user.slice/user@7.service/j10ce.slice/j10ce-sensitive.slice/j10ce-default-web.scope"
    assert host.systemd.paths["j10ce-sensitive.slice"] == os.path.dirname(at.path)


def test_slices_are_made_once(host: Host) -> None:
    make(host, name="a")
    make(host, name="b")
    assert [body[0] for body in host.calls("StartTransientUnit")] == ["j10ce.slice", "j10ce-sensitive.slice"]


def test_a_scope_starts_with_its_first_process_and_all_its_values(host: Host, child: int) -> None:
    at = make(host)
    values = [(Setting(WEB, "cpu.weight"), 2048.0), (Setting(WEB, "memory.low"), 8192.0)]
    values += [(Setting(WEB, "memory.oom.group"), 1.0)]
    assert host.backend.write_many(values, at) == [Applied(2048.0), Applied(8192.0), Applied(1.0)]
    assert [host.backend.read(s, at) for s, _ in values] == [2048.0, 8192.0, 1.0], "as if it were there"
    assert host.tree.join(WEB, child) == Applied(float(child))
    started = dict(host.calls("StartTransientUnit")[-1][2])
    assert (started["PIDs"].value, started["CPUWeight"].value, started["MemoryLow"].value) == ([child], 200, 8192)
    assert not host.calls("SetUnitProperties"), "one call did it all"
    assert (host.systemd.root / at.path / "memory.oom.group").read_text().strip() == "1"


def test_a_running_scope_can_be_given_back_its_defaults(host: Host, child: int) -> None:
    at, low = make(host), Setting(WEB, "memory.low")
    saved = host.backend.save(low, at)
    host.backend.write(low, 8192.0, at)
    host.tree.join(WEB, child)
    assert host.backend.restore(low, saved or "", at) == Applied(0.0)
    kept = [p.name for p in host.systemd.run.rglob("*.conf")]
    assert kept == ["50-MemoryLow.conf"], "without it a reload would bring back what the scope was started with"


def test_a_scope_is_the_same_before_and_after_its_start(host: Host, child: int) -> None:
    at = make(host)
    before = host.tree.identity(at, "cpu")
    host.tree.join(WEB, child)
    assert before == host.tree.identity(at, "cpu") is not None


def test_a_second_process_is_attached(host: Host, child: int) -> None:
    make(host)
    host.tree.join(WEB, child)
    assert host.tree.join(WEB, child) == Applied(float(child))
    assert host.calls("AttachProcessesToUnit") == [("j10ce-default-web.scope", "", [child])]


def test_a_refused_start_carries_systemds_words_and_may_be_tried_again(host: Host, child: int) -> None:
    at = make(host)
    host.backend.write(Setting(WEB, "memory.low"), 8192.0, at)
    host.systemd.refuse = {"MemoryLow"}
    answer = host.tree.join(WEB, child)
    assert isinstance(answer, Refused)
    assert "InvalidArgs: MemoryLow is out of range" in answer.reason
    host.systemd.refuse = set()
    assert host.tree.join(WEB, child) == Applied(float(child))


def test_a_process_that_is_gone_cannot_join(host: Host) -> None:
    make(host)
    process = subprocess.Popen(["true"])
    process.wait()
    assert host.tree.join(WEB, process.pid) == Gone()


def test_process_one_is_never_moved(host: Host) -> None:
    make(host)
    assert isinstance(host.tree.join(WEB, 1), Refused)


def test_a_scope_with_processes_is_not_removed(host: Host, child: int) -> None:
    make(host)
    host.tree.join(WEB, child)
    answer = host.tree.remove(WEB)
    assert isinstance(answer, Refused)
    assert "still holds processes" in answer.reason
    assert not host.calls("StopUnit")


def test_a_scope_that_ended_by_itself_is_gone(host: Host, child: int) -> None:
    make(host)
    host.tree.join(WEB, child)
    host.systemd.end("j10ce-default-web.scope")
    assert host.tree.remove(WEB) == Gone()
    assert host.tree.place(WEB) is None


def test_a_scope_that_never_started_is_forgotten(host: Host) -> None:
    at = make(host)
    assert host.tree.remove(WEB) == Applied(at.path)
    assert host.tree.identity(at, "cpu") is None


def test_empty_slices_of_ours_are_stopped(host: Host) -> None:
    make(host)
    host.tree.remove(WEB)
    for path in ("j10ce.slice/j10ce-sensitive.slice", "j10ce.slice"):
        assert host.tree.remove(group(path)) == Applied(path)
    assert not host.systemd.units


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(group("system.slice"), id="a foreign slice"),
        pytest.param(group("j10ce.slice2"), id="a name that only begins like ours"),
        pytest.param(group(""), id="the root"),
    ],
)
def test_only_our_own_units_are_made_and_removed(host: Host, target: TargetId) -> None:
    at = host.tree.place(target)
    assert at is not None
    assert isinstance(host.tree.make(target, at), Refused)
    assert isinstance(host.tree.remove(target), Refused)
    assert not host.systemd.units


def test_an_adopted_unit_is_known_by_its_name_even_while_stopped(host: Host) -> None:
    host.systemd.add("system.slice/db.service")
    at = host.units.locate("db.service")
    running = host.tree.identity(at, "cpu")
    host.systemd.end("db.service")
    assert running == host.tree.identity(at, "cpu") is not None


@pytest.mark.parametrize(
    "unit", ["-.slice", "init.scope", "kubepods.slice", "kubepods-pod1.slice", "../x.service", "x"]
)
def test_some_units_are_never_adopted(host: Host, unit: str) -> None:
    with pytest.raises(Denied):
        host.units.locate(unit)


def test_a_unit_that_does_not_run_is_not_found(host: Host) -> None:
    with pytest.raises(NotFound, match=r"db\.service is not running"):
        host.units.locate("db.service")
