"""Disks of units: systemd has files of the controller only where it is asked to count."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from j10ce.model.knob import Setting, workload
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from j10ce.testing.fake_systemd import FakeSystemd
from tests.kernel.systemd.systemd_host import Host

DB = Handle("system.slice/db.service", "db.service")
READS = Setting(workload("default", "db"), "io.max.rbps", "8:0")
WEIGHT = READS._replace(knob="io.weight", instance="")


@pytest.fixture
def adopted(host: Host) -> Host:
    host.systemd.add(DB.path)
    return host


def set_on(host: Host) -> list[str]:
    return [name for _, _, rows in host.calls("SetUnitProperties") for name, _ in rows]  # type: ignore[attr-defined]


def switched(host: Host) -> bool:
    return bool(host.systemd.units["db.service"]["IOAccounting"])


def test_what_is_not_counted_has_no_value_yet(adopted: Host) -> None:
    assert adopted.disks.read(READS, DB) is None
    assert adopted.disks.instances("io.max.rbps", DB) == ()


def test_it_is_counted_once_something_is_said_of_it_and_not_again(adopted: Host) -> None:
    assert adopted.disks.save(READS, DB)
    assert adopted.disks.write(READS, 5000.0, DB) == Applied(5000.0)
    assert adopted.disks.write(READS, 6000.0, DB) == Applied(6000.0)
    assert set_on(adopted) == ["IOAccounting"]


def test_a_weight_is_a_property_and_survives_a_reload(adopted: Host) -> None:
    assert adopted.disks.write(WEIGHT, 300.0, DB) == Applied(300.0)
    adopted.systemd.reload()
    assert adopted.disks.read(WEIGHT, DB) == 300.0


def test_it_is_off_again_where_it_was_off(adopted: Host) -> None:
    saved = adopted.disks.save(WEIGHT, DB)
    assert saved is not None
    adopted.disks.write(WEIGHT, 300.0, DB)
    assert adopted.disks.restore(WEIGHT, saved, DB) == Applied(100.0)
    adopted.disks.settle()
    assert not switched(adopted)
    assert not list(Path(adopted.systemd.run).glob("*/*.d/*"))


def test_whoever_is_merely_counted_still_is_when_a_cap_ends(adopted: Host) -> None:
    counted = READS._replace(knob="io.max.riops")
    saved = {s: adopted.disks.save(s, DB) or "" for s in (READS, counted)}
    adopted.disks.write(READS, 5000.0, DB)
    adopted.disks.write(counted, math.inf, DB)
    (adopted.systemd.root / DB.path / "io.max").write_text("")  # as the kernel shows a line without limits
    adopted.disks.restore(READS, saved[READS], DB)
    adopted.disks.settle()
    assert switched(adopted)
    assert adopted.disks.save(counted, DB) != saved[counted], "else a revert would take it for what was there"
    adopted.disks.restore(counted, saved[counted], DB)
    (adopted.systemd.root / DB.path / "io.max").write_text("")
    adopted.disks.settle()
    assert not switched(adopted)


def test_another_agent_turns_it_off_by_what_the_first_put_on_record(adopted: Host) -> None:
    saved = adopted.disks.save(WEIGHT, DB)
    assert saved is not None
    adopted.disks.write(WEIGHT, 300.0, DB)
    second = Host(adopted.systemd)
    second.disks.restore(WEIGHT, saved, DB)
    second.disks.settle()
    assert not switched(adopted)


def test_it_stays_on_while_another_value_is_in_force(adopted: Host) -> None:
    saved = adopted.disks.save(WEIGHT, DB)
    assert saved is not None
    adopted.disks.write(READS, 5000.0, DB)
    adopted.disks.restore(WEIGHT, saved, DB)
    adopted.disks.settle()
    assert switched(adopted)


def test_where_an_operator_had_it_on_it_stays_on(host: Host) -> None:
    host.systemd.add(DB.path, IOAccounting=True)
    saved = host.disks.save(WEIGHT, DB)
    assert saved is not None
    host.disks.write(WEIGHT, 300.0, DB)
    host.disks.restore(WEIGHT, saved, DB)
    host.disks.settle()
    assert switched(host)


def test_what_systemd_refuses_is_an_answer(adopted: Host) -> None:
    adopted.systemd.refuse.add("IOAccounting")
    refused = adopted.disks.write(READS, 5000.0, DB)
    assert isinstance(refused, Refused)
    assert "IOAccounting" in refused.reason
    assert adopted.disks.save(READS, DB) is None


def test_a_cgroup_that_is_no_unit_says_so(adopted: Host) -> None:
    inner = Path(adopted.systemd.root, DB.path, "inner")
    inner.mkdir()
    refused = adopted.disks.write(READS, 5000.0, Handle(f"{DB.path}/inner"))
    assert isinstance(refused, Refused)
    assert "is no unit" in refused.reason


def test_a_unit_that_is_gone_is_an_ordinary_answer(host: Host) -> None:
    assert host.disks.write(READS, math.inf, DB) == Gone()
    assert host.disks.save(READS, DB) is None


def test_a_scope_that_waits_starts_counted_and_limited(host: Host) -> None:
    at = host.tree.path_for("sensitive", "default", "web")
    web = workload("default", "web")
    host.tree.make(web, at)
    assert host.disks.write(READS._replace(target=web), 5000.0, at) == Applied(5000.0)
    assert host.disks.read(READS._replace(target=web), at) == 5000.0
    assert host.disks.save(READS._replace(target=web), at)


def test_a_users_manager_without_the_controller_says_what_it_needs(tmp_path: Path) -> None:
    systemd = FakeSystemd(tmp_path, control_group="user.slice/user@7.service")
    (systemd.root / "user.slice/user@7.service/cgroup.controllers").write_text("cpu memory")
    offered = Host(systemd, user=True).disks.knobs()
    assert {s.needs for s in offered.values()} == {"the io controller delegated to user.slice/user@7.service"}
