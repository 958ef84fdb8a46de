"""The whole kernel stage over systemd: journal, reload, a killed agent, revert."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.owner import choose
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, TargetId, Value, group
from j10ce.model.plan import Applied, Change, Gone, Join, Make, Outcome, Plan, Refused, Remove, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.conformance_kernel import BackendConformance, Bench
from tests.kernel.systemd.test_conformance import UnitBench
from tests.systemd.units import Systemd, cgroup_files, systemctl

Spawn = Callable[..., subprocess.Popen[bytes]]
MIB = 1 << 20
TOP, TIER = "j10ce.slice", "j10ce.slice/j10ce-sensitive.slice"
SCOPE = f"{TIER}/j10ce-default-web.scope"
WEB = Workload("default", "web", handle=Handle(path=SCOPE))
FILES = ("cpu.weight", "cpu.max", "cpu.max.burst", "memory.min", "memory.low", "memory.oom.group")
FLOORS: dict[TargetId, dict[str, Value]] = {
    group(TOP): {"cpu.weight": 8192.0, "memory.low": float(16 * MIB)},
    group(TIER): {"cpu.weight": 4096.0, "memory.low": float(16 * MIB)},
    WEB.target: {
        "cpu.max": 80_000.0,
        "cpu.max.burst": 5_000.0,
        "memory.low": float(16 * MIB),
        "memory.oom.group": 1.0,
    },
}


class Stage(Kernel):
    """An agent's kernel stage; nothing of an earlier one but its journal."""

    def __init__(self, journal: Path) -> None:
        self.owner = choose(Hierarchies.discover(), "systemd")
        super().__init__(self.owner.tree, self.owner.backends, Journal.open(journal, "this boot"), guard=Guard())

    def close(self) -> None:
        super().close()
        self.owner.close()


def writes(values: dict[TargetId, dict[str, Value]]) -> tuple[Change, ...]:
    return tuple(
        ValueChange(Setting(target, knob), None, value, "test", "test")
        for target, wanted in values.items()
        for knob, value in wanted.items()
    )


def build(pid: int) -> tuple[Change, ...]:
    makes = (Make(group(TOP), TOP, "test"), Make(group(TIER), TIER, "test"), Make(WEB.target, SCOPE, "test"))
    return (*makes, *writes(FLOORS), Join(WEB.target, pid, "test"))


def held() -> dict[str, dict[str, str]]:
    return {path: cgroup_files(path, *FILES) for path in (TOP, TIER, SCOPE)}


def all_applied(outcome: Outcome) -> None:
    assert [(c, r) for c, r in outcome.results if not isinstance(r, Applied)] == []


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[[], Stage]]:
    """Starts an agent's kernel stage; a second call, one that takes over after the first was killed."""
    started: list[Stage] = []

    def start() -> Stage:
        started.append(Stage(tmp_path / "journal"))
        return started[-1]

    yield start
    for stage in started:
        stage.close()
    left = systemctl("list-units", "--all", "--plain", "--no-legend", "j10ce*").split()
    assert not left, "revert leaves no unit of ours behind"


def end(kernel: Kernel, child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    scope = Path("/sys/fs/cgroup", SCOPE)
    while scope.exists():
        pass
    assert not kernel.revert().refused()


def test_every_ancestor_covers_the_floor_from_the_start(agent: Callable[[], Stage], spawn: Spawn) -> None:
    kernel, child = agent(), spawn()
    kernel.track([WEB])
    all_applied(kernel.apply(Plan(build(child.pid))))
    assert {path: files["memory.low"] for path, files in held().items()} == dict.fromkeys(held(), str(16 * MIB))
    assert held()[SCOPE]["cpu.max.burst"] == "5000"
    assert not kernel.read_now([WEB.target, group(TOP), group(TIER)]), "what was reported is what holds"
    end(kernel, child)


def test_a_reload_is_found_and_undone(agent: Callable[[], Stage], spawn: Spawn) -> None:
    kernel, child = agent(), spawn()
    kernel.track([WEB])
    kernel.apply(Plan(build(child.pid)))
    before = held()
    systemctl("daemon-reload")
    drifts = kernel.read_now([WEB.target, group(TOP), group(TIER)])
    assert [d.setting.knob for d in drifts] == ["memory.oom.group"], "all else was set through systemd"
    all_applied(kernel.apply(Plan(writes({WEB.target: {"memory.oom.group": 1.0}}))))
    assert held() == before
    end(kernel, child)


def test_a_killed_agent_leaves_floors_that_the_next_one_gives_back(agent: Callable[[], Stage], spawn: Spawn) -> None:
    first, child = agent(), spawn()
    first.track([WEB])
    first.apply(Plan(build(child.pid)))
    floors = held()
    second = agent()
    second.track([WEB])
    assert held() == floors
    refused = second.revert().refused()
    assert [type(change) for change, _ in refused] == [Remove] * 3, "the command still runs, and keeps its place"
    fresh = {"cpu.max": "max 100000", "cpu.max.burst": "0", "memory.min": "0", "memory.low": "0"}
    left = {k: v for k, v in held()[SCOPE].items() if k in fresh}
    assert left.items() <= fresh.items(), "files of a controller that nobody wants any more are not there"
    assert held()[TOP]["memory.low"] == "0"
    end(second, child)


def test_an_adopted_service_is_reverted_by_the_next_agent(agent: Callable[[], Stage]) -> None:
    unit = Path("/run/systemd/system/db.service")
    unit.write_text("[Service]\nExecStart=/bin/sleep 600\nCPUWeight=300\n")
    systemctl("daemon-reload")
    systemctl("start", "db.service")
    db = Workload("default", "db", handle=Handle(path="system.slice/db.service", unit="db.service", made=False))
    first = agent()
    first.track([db])
    wanted: dict[str, Value] = {"cpu.weight": 1024.0, "memory.low": float(MIB)}
    above: dict[str, Value] = {"memory.low": float(2 * MIB)}
    all_applied(first.apply(Plan(writes({group("system.slice"): above, db.target: wanted}))))
    systemctl("restart", "db.service")
    second = agent()
    second.track([db])
    assert not second.revert().refused()
    assert cgroup_files("system.slice/db.service", "cpu.weight", "memory.low") == {
        "cpu.weight": "300",
        "memory.low": "0",
    }
    assert cgroup_files("system.slice", "memory.low") == {"memory.low": "0"}
    assert not list(Path("/run/systemd/system.control").glob("*.d/*"))
    assert systemctl("show", "-P", "NeedDaemonReload", "db.service").strip() == "no"
    systemctl("stop", "db.service")
    unit.unlink()


class TestOnSystemd(BackendConformance):
    @pytest.fixture
    def bench(self, systemd: Systemd) -> Iterator[Bench]:
        places = [systemd.tree.path_for("", "", ""), systemd.tree.path_for("standard", "", "")]
        for at in places:
            assert isinstance(systemd.tree.make(group(at.path), at), Applied)
        yield UnitBench(systemd.tree, systemd.backend, places[0].path)
        for at in reversed(places):
            assert not isinstance(systemd.tree.remove(group(at.path)), Refused | Gone)
