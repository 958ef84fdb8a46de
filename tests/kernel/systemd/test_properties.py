"""Values of units: set in one call, read from the kernel's files, given back as they were."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.systemd.units import UNSET
from j10ce.model.knob import CGROUP_KNOBS, Setting, Value, workload
from j10ce.model.plan import Applied, Gone, Plan, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.fake_systemd import FakeSystemd
from tests.kernel.systemd.systemd_host import Host

DB = workload("default", "db")
AT = Handle("system.slice/db.service", "db.service")
MIB = float(1 << 20)


def setting(knob: str) -> Setting:
    return Setting(DB, knob)


@pytest.fixture
def adopted(host: Host) -> Host:
    host.systemd.add(AT.path, CPUWeight=500, MemoryHigh=800 << 20)
    return host


def drop_ins(host: Host) -> list[str]:
    return sorted(p.name for p in host.systemd.run.rglob("*.conf"))


def test_many_values_are_one_call(adopted: Host) -> None:
    values = [(setting("cpu.weight"), 1024.0), (setting("memory.low"), MIB), (setting("cpu.max"), 50_000.0)]
    assert adopted.backend.write_many(values, AT) == [Applied(1024.0), Applied(MIB), Applied(50_000.0)]
    (call,) = adopted.calls("SetUnitProperties")
    assert [name for name, _ in call[2]] == ["CPUQuotaPerSecUSec", "CPUWeight", "MemoryLow"], "sorted"


def test_what_systemd_does_not_know_is_written_to_the_file(adopted: Host) -> None:
    assert adopted.backend.write(setting("cpu.max.burst"), 2000.0, AT) == Applied(2000.0)
    assert not adopted.calls("SetUnitProperties")


def test_the_files_say_what_holds(adopted: Host) -> None:
    (adopted.systemd.root / AT.path / "memory.low").write_text("4096")
    assert adopted.backend.read(setting("memory.low"), AT) == 4096.0


def test_a_value_set_through_systemd_survives_a_reload(adopted: Host) -> None:
    adopted.backend.write_many([(setting("cpu.weight"), 1024.0), (setting("memory.oom.group"), 1.0)], AT)
    adopted.systemd.reload()
    assert adopted.backend.read(setting("cpu.weight"), AT) == 1024.0
    assert adopted.backend.read(setting("memory.oom.group"), AT) == 0.0, "a file does not: it shows as drift"


def test_one_bad_value_does_not_stop_the_others(adopted: Host) -> None:
    adopted.systemd.refuse = {"MemoryLow"}
    low, weight = adopted.backend.write_many([(setting("memory.low"), MIB), (setting("cpu.weight"), 1024.0)], AT)
    assert isinstance(low, Refused)
    assert "memory.low = 1Mi on db.service: systemd said InvalidArgs" in low.reason
    assert weight == Applied(1024.0)


def test_an_idle_unit_takes_no_weight(adopted: Host) -> None:
    adopted.backend.write(setting("cpu.idle"), 1.0, AT)
    assert isinstance(adopted.backend.write(setting("cpu.weight"), 1024.0, AT), Refused)
    both = adopted.backend.write_many([(setting("cpu.idle"), 0.0), (setting("cpu.weight"), 2048.0)], AT)
    assert both == [Applied(0.0), Applied(2048.0)]


def test_an_older_systemd_knows_no_idle_weight(tmp_path: Path) -> None:
    host = Host(FakeSystemd(tmp_path, version="249.11"))
    host.systemd.add(AT.path)
    assert host.backend.write(setting("cpu.idle"), 1.0, AT) == Applied(1.0)
    assert not host.calls("SetUnitProperties"), "it leaves the file alone"


def test_a_limit_below_the_present_one_is_lowered_in_the_file_first(adopted: Host) -> None:
    """The writer of the file waits for the reclaim; that must not be process 1."""
    file = adopted.systemd.root / AT.path / "memory.max"
    seen: list[str] = []
    call = adopted.systemd.call

    def watched(member: str, *args: object, **options: str) -> object:
        seen.append(f"{member} {file.read_text().strip()}")
        return call(member, *args, **options)  # type: ignore[arg-type]

    adopted.systemd.call = watched  # type: ignore[method-assign,assignment]
    assert adopted.backend.write(setting("memory.max"), MIB, AT) == Applied(MIB)
    assert f"SetUnitProperties {1 << 20}" in seen


@pytest.mark.parametrize("knob", sorted(k.name for k in CGROUP_KNOBS.values() if k.systemd))
def test_a_unit_is_given_back_as_it_was(adopted: Host, knob: str) -> None:
    before = dict(adopted.systemd.units["db.service"])
    value: Value = frozenset({0}) if knob == "cpuset.cpus" else 1.0 if knob == "cpu.idle" else 4 * MIB
    saved = adopted.backend.save(setting(knob), AT)
    assert saved is not None
    adopted.backend.write(setting(knob), 20_000.0 if knob.startswith("cpu.m") else value, AT)
    assert adopted.systemd.units["db.service"] != before
    assert isinstance(adopted.backend.restore(setting(knob), saved, AT), Applied)
    assert adopted.systemd.units["db.service"] == before
    assert not drop_ins(adopted)


def test_systemd_is_asked_to_forget_our_drop_ins_once(adopted: Host) -> None:
    knobs = [setting("cpu.weight"), setting("memory.low")]
    saved = {s: adopted.backend.save(s, AT) or "" for s in knobs}
    adopted.backend.write_many([(s, 4096.0) for s in knobs], AT)
    for s in knobs:
        adopted.backend.restore(s, saved[s], AT)
    adopted.backend.settle()
    adopted.backend.settle()
    assert len(adopted.calls("Reload")) == 1


def test_nothing_removed_nothing_reloaded(adopted: Host) -> None:
    adopted.backend.write(setting("cpu.weight"), 4096.0, AT)
    adopted.backend.settle()
    assert not adopted.calls("Reload")


def test_a_drop_in_that_was_there_before_stays(adopted: Host) -> None:
    folder = adopted.systemd.run / "system.control/db.service.d"
    folder.mkdir(parents=True)
    (folder / "50-CPUWeight.conf").write_text("CPUWeight=500")
    saved = adopted.backend.save(setting("cpu.weight"), AT)
    adopted.backend.write(setting("cpu.weight"), 4096.0, AT)
    adopted.backend.restore(setting("cpu.weight"), saved or "", AT)
    assert drop_ins(adopted) == ["50-CPUWeight.conf"]
    assert adopted.systemd.units["db.service"]["CPUWeight"] == 500


def test_where_drop_ins_can_only_be_read_the_value_goes_back_all_the_same(
    adopted: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that has systemd's folder read-only."""

    def read_only(path: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    monkeypatch.setattr(os, "unlink", read_only)
    saved = adopted.backend.save(setting("cpu.weight"), AT)
    adopted.backend.write(setting("cpu.weight"), 4096.0, AT)
    assert isinstance(adopted.backend.restore(setting("cpu.weight"), saved or "", AT), Applied)
    assert adopted.systemd.units["db.service"]["CPUWeight"] == 500


def test_a_stopped_unit_gives_back_what_its_next_start_would_have(adopted: Host) -> None:
    saved = adopted.backend.save(setting("cpu.weight"), AT)
    adopted.backend.write(setting("cpu.weight"), 4096.0, AT)
    adopted.systemd.end("db.service")
    assert adopted.backend.read(setting("cpu.weight"), AT) == 4096.0, "systemd keeps it"
    adopted.backend.restore(setting("cpu.weight"), saved or "", AT)
    assert adopted.systemd.units["db.service"]["CPUWeight"] == 500
    assert adopted.backend.read(setting("cpu.weight"), AT) is None


def test_a_unit_that_does_not_run_gets_nothing(adopted: Host) -> None:
    adopted.systemd.end("db.service")
    assert adopted.backend.write(setting("cpu.weight"), 4096.0, AT) == Gone()
    assert not drop_ins(adopted)


def test_a_cpuset_follows_its_parent_again(adopted: Host) -> None:
    (adopted.systemd.root / "system.slice/cpuset.cpus.effective").write_text("0-3")
    adopted.backend.write(setting("cpuset.cpus"), frozenset({1}), AT)
    assert adopted.backend.write(setting("cpuset.cpus"), frozenset(), AT) == Applied(frozenset())
    assert adopted.systemd.units["db.service"]["AllowedCPUs"] == b""


def test_files_of_an_absent_controller_read_as_default(adopted: Host) -> None:
    (adopted.systemd.root / AT.path / "cpu.weight").unlink()
    assert adopted.backend.read(setting("cpu.weight"), AT) == 1024.0
    assert adopted.backend.read(setting("cpu.weight"), Handle("system.slice/none.service")) is None


def test_a_cgroup_below_a_unit_is_written_by_file(adopted: Host) -> None:
    below = Handle(f"{AT.path}/worker")
    adopted.systemd.add(below.path)
    assert adopted.backend.write(setting("memory.low"), MIB, below) == Applied(MIB)
    assert not adopted.calls("SetUnitProperties")


@pytest.mark.parametrize("quota", [12_345.0, 3_000.0, 70_000.0])
def test_a_quota_that_systemd_rounds_to_the_periods_of_a_unit_is_set_once(
    host: Host, tmp_path: Path, quota: float
) -> None:
    host.systemd.add(AT.path, CPUQuotaPeriodUSec=10_000)
    kernel = Kernel(host.tree, [host.backend], Journal.open(tmp_path / "journal", "boot"), guard=Guard())
    kernel.track([Workload("default", "db", handle=Handle(AT.path, unit=AT.unit, made=False))])
    for _ in range(3):  # as the arbiter does on every tick
        wanted, present = kernel.quantise(setting("cpu.max"), quota), kernel.settings[setting("cpu.max")]
        changes = [ValueChange(setting("cpu.max"), present, wanted, "test", "test")] if wanted != present else []
        kernel.apply(Plan(tuple(changes)))
    assert len(host.calls("SetUnitProperties")) == 1
    assert kernel.settings[setting("cpu.max")] == pytest.approx(quota, abs=10.0)
    assert not kernel.revert().refused()
    assert (host.systemd.root / AT.path / "cpu.max").read_text() == "max 10000"
    kernel.close()


def test_a_user_hears_which_controller_is_not_delegated(tmp_path: Path) -> None:
    host = Host(FakeSystemd(tmp_path, control_group="user.slice/user@7.service"), user=True)
    (host.systemd.root / "user.slice/user@7.service/cgroup.controllers").write_text("cpu memory pids")
    support = host.backend.knobs()
    assert support["cpu.weight"].ok
    assert support["cpu.weight"].via == "systemd"
    assert support["cpuset.cpus"].needs == "the cpuset controller delegated to user.slice/user@7.service"


@pytest.mark.parametrize(
    ("above", "needs"),
    [
        (("0", "0"), "memory.min of user.slice, which root alone can set"),
        (("67108864", "0"), "memory.min of user.slice/user@7.service, which root alone can set"),
        (("67108864", "67108864"), ""),
    ],
)
def test_a_user_hears_that_nothing_is_protected_above(tmp_path: Path, above: tuple[str, str], needs: str) -> None:
    host = Host(FakeSystemd(tmp_path, control_group="user.slice/user@7.service"), user=True)
    for path, text in zip(("user.slice", "user.slice/user@7.service"), above, strict=True):
        (host.systemd.root / path / "memory.min").write_text(text)
    support = host.backend.knobs()["memory.min"]
    assert (support.ok, support.needs) == (not needs, needs)


def test_an_unset_property_is_saved_as_unset(host: Host) -> None:
    host.systemd.add(AT.path)
    assert host.backend.save(setting("cpu.weight"), AT) == f'{{"value":{UNSET},"kept":false}}'


def test_a_file_that_went_with_its_controller_needs_no_restoring(adopted: Host) -> None:
    burst, file = setting("cpu.max.burst"), adopted.systemd.root / AT.path / "cpu.max.burst"
    there = adopted.backend.save(burst, AT)
    file.unlink()
    gone = adopted.backend.save(burst, AT)
    assert there == gone is not None
    assert adopted.backend.restore(burst, gone, AT) == Applied(0.0)
    assert adopted.backend.write(burst, 0.0, AT) == Applied(0.0)
    assert isinstance(adopted.backend.write(burst, 5.0, AT), Refused)
