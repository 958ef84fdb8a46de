"""Our own units: slices for tiers, a scope per workload, all values from the first instruction on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from j10ce.model.knob import Setting, TargetId, Value, group, workload
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from tests.systemd.units import Systemd, cgroup_files, systemctl

Spawn = Callable[..., subprocess.Popen[bytes]]
MIB = 1 << 20
FILES = ("cpu.weight", "cpu.max", "cpu.max.burst", "cpuset.cpus", "memory.min", "memory.low", "memory.max")
FILES += ("memory.oom.group",)
WANTED: dict[str, Value] = {
    "cpu.weight": 2048.0,
    "cpu.max": 50_000.0,
    "cpu.max.burst": 10_000.0,
    "cpuset.cpus": frozenset({1}),
    "memory.min": float(4 * MIB),
    "memory.low": float(8 * MIB),
    "memory.max": float(512 * MIB),
    "memory.oom.group": 1.0,
}
HELD = {
    "cpu.weight": "200",
    "cpu.max": "50000 100000",
    "cpu.max.burst": "10000",
    "cpuset.cpus": "1",
    "memory.min": str(4 * MIB),
    "memory.low": str(8 * MIB),
    "memory.max": str(512 * MIB),
    "memory.oom.group": "1",
}


class Placed:
    """Top and tiers, and workloads in them; `clear` takes all of it away."""

    def __init__(self, systemd: Systemd) -> None:
        self.systemd = systemd
        self.groups: list[TargetId] = []
        self.make_group("")

    def make_group(self, tier: str) -> Handle:
        at = self.systemd.tree.path_for(tier, "", "")
        assert self.systemd.tree.make(group(at.path), at) == Applied(at.path)
        self.groups += [group(at.path)] if group(at.path) not in self.groups else []
        return at

    def run(self, tier: str, name: str, pid: int, values: dict[str, Value]) -> Handle:
        self.make_group(tier)
        target, at = workload("default", name), self.systemd.tree.path_for(tier, "default", name)
        self.systemd.tree.make(target, at)
        answers = self.systemd.backend.write_many([(Setting(target, k), v) for k, v in values.items()], at)
        assert all(isinstance(a, Applied) for a in answers), answers
        assert self.systemd.tree.join(target, pid) == Applied(float(pid))
        return at

    def set(self, at: Handle, values: dict[str, Value]) -> None:
        writes = [(Setting(group(at.path), k), v) for k, v in values.items()]
        assert all(isinstance(a, Applied) for a in self.systemd.backend.write_many(writes, at))

    def clear(self) -> None:
        for target in reversed(self.groups):
            assert self.systemd.tree.remove(target) in (Applied(target.removeprefix("group/")), Gone())


@pytest.fixture
def placed(systemd: Systemd, spawn: Spawn) -> Iterator[Placed]:
    placed = Placed(systemd)
    yield placed
    for at in [p for t, p in systemd.tree._known.items() if t.startswith("workload/")]:
        kill = Path("/sys/fs/cgroup", at.path, "cgroup.kill")
        if kill.exists():
            kill.write_text("1")
            wait_until_empty(at)
    placed.clear()


def wait_until_empty(at: Handle) -> None:
    """The kernel tells when the last process is gone; systemd then ends the scope."""
    directory = Path("/sys/fs/cgroup", at.path)
    while directory.exists():
        time.sleep(0.01)


def test_a_command_starts_with_every_value_in_force(placed: Placed, spawn: Spawn) -> None:
    child = spawn()
    at = placed.run("sensitive", "web-1", child.pid, WANTED)
    assert Path(f"/proc/{child.pid}/cgroup").read_text() == f"0::/{at.path}\n"
    assert cgroup_files(at.path, *FILES) == HELD


def test_a_reload_keeps_what_was_set_through_systemd(placed: Placed, spawn: Spawn) -> None:
    at = placed.run("sensitive", "web", spawn().pid, WANTED)
    tier = placed.make_group("sensitive")
    placed.set(tier, {"memory.low": float(16 * MIB), "cpu.weight": 4096.0})
    before = cgroup_files(at.path, *FILES), cgroup_files(tier.path, *FILES)
    systemctl("daemon-reload")
    after = cgroup_files(at.path, *FILES)
    assert after | {"memory.oom.group": "1"} == before[0], "only the one file that systemd has no property for"
    setting = Setting(workload("default", "web"), "memory.oom.group")
    assert placed.systemd.backend.read(setting, at) == 0.0, "which the sweep after a reload finds"
    assert placed.systemd.backend.write(setting, 1.0, at) == Applied(1.0)
    assert (cgroup_files(at.path, *FILES), cgroup_files(tier.path, *FILES)) == before


def test_a_scope_goes_away_with_its_process_and_leaves_no_file(placed: Placed, spawn: Spawn) -> None:
    child = spawn()
    at = placed.run("standard", "short", child.pid, {"cpu.weight": 512.0})
    placed.systemd.backend.write(Setting(workload("default", "short"), "memory.low"), float(MIB), at)
    assert list(Path("/run/systemd/transient").glob("j10ce-default-short*"))
    child.kill()
    child.wait()
    wait_until_empty(at)
    assert placed.systemd.tree.remove(workload("default", "short")) in (Gone(), Applied(at.path))
    assert not list(Path("/run/systemd/transient").glob("j10ce-default-short*"))


def test_a_second_process_joins_and_a_populated_scope_stays(placed: Placed, spawn: Spawn) -> None:
    at = placed.run("standard", "pair", spawn().pid, {})
    second = spawn()
    assert placed.systemd.tree.join(workload("default", "pair"), second.pid) == Applied(float(second.pid))
    assert Path(f"/proc/{second.pid}/cgroup").read_text() == f"0::/{at.path}\n"
    assert isinstance(placed.systemd.tree.remove(workload("default", "pair")), Refused)
    assert second.poll() is None


def test_no_limit_that_nobody_declared(placed: Placed, spawn: Spawn) -> None:
    at = placed.run("standard", "free", spawn().pid, {})
    assert cgroup_files(at.path, "pids.max", "memory.max") == {"pids.max": "max", "memory.max": "max"}


def test_idle_and_weight_are_one_property(placed: Placed, spawn: Spawn) -> None:
    placed.run("besteffort", "crunch", spawn().pid, {})
    tier = placed.make_group("besteffort")
    placed.set(tier, {"cpu.idle": 1.0})
    assert cgroup_files(tier.path, "cpu.idle")["cpu.idle"] == "1"
    placed.set(tier, {"cpu.idle": 0.0, "cpu.weight": 512.0})
    assert cgroup_files(tier.path, "cpu.idle", "cpu.weight") == {"cpu.idle": "0", "cpu.weight": "50"}


def test_a_cpuset_can_be_given_up_while_a_sibling_keeps_its_own(placed: Placed, spawn: Spawn) -> None:
    placed.run("reserved", "pinned", spawn().pid, {"cpuset.cpus": frozenset({0})})
    at = placed.run("reserved", "freed", spawn().pid, {"cpuset.cpus": frozenset({1})})
    setting = Setting(workload("default", "freed"), "cpuset.cpus")
    assert placed.systemd.backend.write(setting, frozenset(), at) == Applied(frozenset())
    assert cgroup_files(at.path, "cpuset.cpus.effective") == {"cpuset.cpus.effective": "0-1"}


def test_a_cpu_floor_holds_against_another_tier(placed: Placed, spawn: Spawn) -> None:
    """Two busy loops on one CPU; weights 4:1 through systemd, measured by the cgroups' own clocks."""
    busy = ("sh", "-c", "while :; do :; done")
    one = {"cpuset.cpus": frozenset({1})}
    protected = placed.run("sensitive", "service", spawn(*busy).pid, dict(one))
    other = placed.run("standard", "hog", spawn(*busy).pid, dict(one))
    placed.set(placed.make_group("sensitive"), {"cpu.weight": 4096.0})
    placed.set(placed.make_group("standard"), {"cpu.weight": 1024.0})
    before = cpu_us(protected), cpu_us(other)
    while cpu_us(protected) + cpu_us(other) - sum(before) < 3_000_000:
        time.sleep(0.1)
    share = (cpu_us(protected) - before[0]) / (cpu_us(protected) + cpu_us(other) - sum(before))
    print(f"share {share:.3f} of 0.8")
    assert share > 0.72


def cpu_us(at: Handle) -> int:
    return int(cgroup_files(at.path, "cpu.stat")["cpu.stat"].split()[1])


def test_an_arrival_is_a_few_calls(placed: Placed, spawn: Spawn) -> None:
    placed.make_group("sensitive")
    times = []
    for n in range(5):
        child = spawn()
        begun = time.monotonic()
        placed.run("sensitive", f"arrival-{n}", child.pid, WANTED)
        times.append(time.monotonic() - begun)
    print(f"arrival through systemd: {', '.join(f'{t * 1000:.0f}' for t in times)} ms, in a guest 16 times slower")
    assert len(list(Path("/sys/fs/cgroup/j10ce.slice/j10ce-sensitive.slice").glob("*arrival*"))) == 5
