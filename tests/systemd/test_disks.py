"""Disks where systemd owns the tree: it has files of the controller only for units that were asked to be counted."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.owner import choose
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Applied, Change, Gone, Join, Make, Outcome, Plan, Remove, ValueChange
from j10ce.model.workload import Handle, Workload
from tests.enforce.disk.loop import Loop, loop
from tests.systemd.units import cgroup_files, systemctl

Spawn = Callable[..., subprocess.Popen[bytes]]
MIB = 1 << 20
TOP, TIER = "j10ce.slice", "j10ce.slice/j10ce-sensitive.slice"
SCOPE = f"{TIER}/j10ce-default-web.scope"
WEB = Workload("default", "web", handle=Handle(path=SCOPE))
DB = Workload("default", "db", handle=Handle(path="system.slice/db.service", unit="db.service", made=False))
WEIGHT = Setting(WEB.target, "io.weight")


class Stage(Kernel):
    """An agent's kernel stage; nothing of an earlier one but its journal."""

    def __init__(self, journal: Path) -> None:
        self.owner = choose(Hierarchies.discover(), "systemd")
        super().__init__(self.owner.tree, self.owner.backends, Journal.open(journal, "this boot"), guard=Guard())

    def write(self, *values: tuple[Setting, Value]) -> None:
        self.insist(*(ValueChange(setting, None, value, "test", "test") for setting, value in values))

    def insist(self, *changes: Change) -> None:
        outcome: Outcome = self.apply(Plan(changes))
        assert [(c, r) for c, r in outcome.results if not isinstance(r, Applied)] == []

    def close(self) -> None:
        super().close()
        self.owner.close()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Loop]:
    with loop(tmp_path / "image", 16 * MIB) as made:
        yield made


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[[], Stage]]:
    """Starts one; a second call, one that takes over after the first was killed."""
    started: list[Stage] = []

    def start() -> Stage:
        started.append(Stage(tmp_path / "journal"))
        return started[-1]

    yield start
    for stage in started:
        stage.close()


@pytest.fixture
def service() -> Iterator[None]:
    """One that was there before us, and whose use of disks nobody counts."""
    unit = Path("/run/systemd/system/db.service")
    unit.write_text("[Service]\nExecStart=/bin/sleep 600\n")
    systemctl("daemon-reload")
    systemctl("start", "db.service")
    yield
    systemctl("stop", "db.service")
    unit.unlink()


def start(kernel: Stage, child: subprocess.Popen[bytes], *values: tuple[Setting, Value]) -> None:
    makes = (Make(group(TOP), TOP, "test"), Make(group(TIER), TIER, "test"), Make(WEB.target, SCOPE, "test"))
    kernel.track([WEB])
    kernel.insist(*makes)
    kernel.write(*values)
    kernel.insist(Join(WEB.target, child.pid, "test"))


def end(kernel: Kernel, child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    while Path("/sys/fs/cgroup", SCOPE).exists():
        pass
    assert not [(c, r) for c, r in kernel.revert().refused() if not isinstance(r, Gone)]
    assert not systemctl("list-units", "--all", "--plain", "--no-legend", "j10ce*").split()


def cap(workload: Workload, device: Loop, what: str = "rbps") -> Setting:
    return Setting(workload.target, f"io.max.{what}", device.number)


def test_a_command_starts_with_its_cap_in_force(agent: Callable[[], Stage], spawn: Spawn, device: Loop) -> None:
    kernel, child = agent(), spawn()
    start(kernel, child, (cap(WEB, device), float(MIB)))
    assert cgroup_files(SCOPE, "io.max") == {"io.max": f"{device.number} rbps={MIB} wbps=max riops=max wiops=max"}
    end(kernel, child)


def test_one_that_runs_is_counted_once_something_is_said_of_its_disks(
    agent: Callable[[], Stage], spawn: Spawn, device: Loop
) -> None:
    kernel, child = agent(), spawn()
    start(kernel, child)
    assert cgroup_files(SCOPE, "io.max", "io.stat") == {}
    kernel.write((cap(WEB, device, "riops"), math.inf))
    assert cgroup_files(SCOPE, "io.max", "io.stat").keys() == {"io.max", "io.stat"}
    end(kernel, child)


def test_a_reload_keeps_caps_and_weight(agent: Callable[[], Stage], spawn: Spawn, device: Loop) -> None:
    kernel, child = agent(), spawn()
    start(kernel, child)
    kernel.write((cap(WEB, device), float(MIB)), (WEIGHT, 300.0))
    before = cgroup_files(SCOPE, "io.max", "io.weight")
    systemctl("daemon-reload")
    assert cgroup_files(SCOPE, "io.max", "io.weight") == before
    assert before["io.weight"].startswith("default 300")
    assert not kernel.read_now([WEB.target])
    end(kernel, child)


def test_what_still_runs_after_a_revert_has_no_cap_and_is_counted_no_longer(
    agent: Callable[[], Stage], spawn: Spawn, device: Loop
) -> None:
    first, child = agent(), spawn()
    start(first, child)
    first.write((cap(WEB, device), float(MIB)), (WEIGHT, 300.0))
    second = agent()
    second.track([WEB])
    assert {type(change) for change, _ in second.revert().refused()} == {Remove}
    assert cgroup_files(SCOPE, "io.max", "io.weight") == {}
    end(second, child)


@pytest.mark.usefixtures("service")
def test_an_adopted_service_is_limited_and_given_back_to_the_letter(agent: Callable[[], Stage], device: Loop) -> None:
    path = DB.handle.path
    before, units = cgroup_files(path, "io.max", "io.stat"), systemctl("show", "db.service", "-p", "IOAccounting")
    first = agent()
    first.track([DB])
    first.write(
        (cap(DB, device, "wbps"), float(MIB)), (cap(DB, device), float(2 * MIB)), (cap(DB, device, "riops"), 9.0)
    )
    assert cgroup_files(path, "io.max") == {"io.max": f"{device.number} rbps={2 * MIB} wbps={MIB} riops=9 wiops=max"}
    second = agent()
    second.track([DB])
    assert not second.revert().refused()
    assert cgroup_files(path, "io.max", "io.stat") == before
    assert systemctl("show", "db.service", "-p", "IOAccounting") == units
    assert not list(Path("/run/systemd/system.control").glob("*.d/*"))
    assert systemctl("show", "-P", "NeedDaemonReload", "db.service").strip() == "no"


@pytest.mark.usefixtures("service")
def test_a_cap_that_ends_leaves_the_others_of_the_service(agent: Callable[[], Stage], device: Loop) -> None:
    kernel = agent()
    kernel.track([DB])
    kernel.write((cap(DB, device, "wbps"), float(MIB)), (cap(DB, device), float(2 * MIB)))
    kernel.insist(ValueChange(cap(DB, device, "wbps"), None, math.inf, "test", "test", ends=True))
    assert cgroup_files(DB.handle.path, "io.max") == {
        "io.max": f"{device.number} rbps={2 * MIB} wbps=max riops=max wiops=max"
    }
    kernel.insist(ValueChange(cap(DB, device), None, math.inf, "test", "test", ends=True))
    assert cgroup_files(DB.handle.path, "io.max") == {}
