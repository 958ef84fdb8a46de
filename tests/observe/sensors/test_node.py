"""What the machine is, and how busy it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.model.knob import NODE
from j10ce.observe.sensors.node import NodeSensor, discover, refresh
from j10ce.testing.cgroup_tree import cgroup_tree

HZ = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    put(tmp_path, "sys/devices/system/cpu/online", "0-3,8")
    put(tmp_path, "proc/meminfo", "MemTotal:  1000 kB\nMemFree:  400 kB\nMemAvailable:  700 kB\nBuffers:  1 kB")
    put(tmp_path, "proc/sys/kernel/osrelease", "6.1.0-test")
    put(tmp_path, "proc/sys/kernel/random/boot_id", "b007")
    put(tmp_path, "proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1 1\nintr 5")
    for pressure in ("cpu", "memory", "io"):
        put(tmp_path, f"proc/pressure/{pressure}", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0")
    return tmp_path


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def hierarchies(root: Path) -> Hierarchies:
    return cgroup_tree(root / "cgroup", {})


def test_facts_are_read_from_the_machine(machine: Path) -> None:
    facts = discover("n1", hierarchies(machine), Files(), str(machine))
    assert facts.cpus == {0, 1, 2, 3, 8}
    assert facts.memory == 1000 * 1024
    assert (facts.name, facts.kernel, facts.boot_id, facts.cgroup) == ("n1", "6.1.0-test", "b007", "v2")
    assert not facts.systemd


def test_systemd_is_known_by_what_it_leaves_in_run(machine: Path) -> None:
    (machine / "run/systemd/system").mkdir(parents=True)
    assert discover("n1", hierarchies(machine), Files(), str(machine)).systemd


def test_a_machine_that_shrinks_has_other_facts(machine: Path) -> None:
    files = Files()
    where = hierarchies(machine)
    facts = discover("n1", where, files, str(machine))
    assert refresh(facts, where, files, str(machine)) is facts
    put(machine, "sys/devices/system/cpu/online", "0-1")
    assert refresh(facts, where, files, str(machine)).cpus == {0, 1}
    assert refresh(facts, where, files, str(machine)).boot_id == facts.boot_id


def test_the_topology_follows_cpus_that_come_and_go(machine: Path) -> None:
    put(machine, "sys/devices/system/cpu/cpu3/topology/core_cpus_list", "2-3")
    where, files = hierarchies(machine), Files()
    facts = discover("n1", where, files, str(machine))
    assert facts.topology.cpus == {0, 1, 2, 3, 8}
    assert facts.topology.siblings(3) == {2, 3}
    put(machine, "sys/devices/system/cpu/cpu3/topology/core_cpus_list", "3")
    put(machine, "sys/devices/system/cpu/online", "0-1,3")
    after = refresh(facts, where, files, str(machine))
    assert after.topology.cpus == {0, 1, 3}
    assert after.topology.siblings(3) == {3}


def test_files_that_vanish_leave_the_facts_as_they_were(machine: Path) -> None:
    where = hierarchies(machine)
    facts = discover("n1", where, Files(), str(machine))
    assert refresh(facts, where, Files(), str(machine / "nowhere")) is facts


def test_cpus_isolated_at_boot_are_no_capacity(machine: Path) -> None:
    put(machine, "sys/devices/system/cpu/isolated", "2-3")
    facts = discover("n1", hierarchies(machine), Files(), str(machine))
    assert facts.cpus == {0, 1, 8}
    assert facts.capacity.cpu == 3000


@pytest.mark.parametrize(
    ("v1", "file"), [((), "cpuset.cpus.effective"), (("cpu", "cpuset"), "cpuset.effective_cpus")], ids=["v2", "v1"]
)
def test_cpus_of_anothers_partition_or_outside_the_container_are_no_capacity(
    machine: Path, v1: tuple[str, ...], file: str
) -> None:
    where = cgroup_tree(machine / "cgroup", {}, v1=v1)
    Path(where.file("cpuset", "", file)).write_text("0-1,8\n")
    facts = discover("n1", where, Files(), str(machine))
    assert facts.cpus == {0, 1, 8}
    Path(where.file("cpuset", "", file)).write_text("0-3,8\n")
    assert refresh(facts, where, Files(), str(machine)).cpus == {0, 1, 2, 3, 8}


@pytest.mark.parametrize(
    ("v1", "texts", "millicores"),
    [
        pytest.param((), {"cpu.max": "250000 100000"}, 2500, id="v2"),
        pytest.param((), {"cpu.max": "max 100000"}, 5000, id="v2 without a quota"),
        pytest.param((), {}, 5000, id="the machine's own root"),
        pytest.param(("cpu",), {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, 1500, id="v1"),
        pytest.param(("cpu",), {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, 5000, id="v1 without"),
    ],
)
def test_a_container_with_a_quota_has_no_more_to_promise(
    machine: Path, v1: tuple[str, ...], texts: dict[str, str], millicores: int
) -> None:
    where = cgroup_tree(machine / "cgroup", {}, v1=v1)
    for name, text in texts.items():
        Path(where.file("cpu", "", name)).write_text(f"{text}\n")
    assert discover("n1", where, Files(), str(machine)).capacity.cpu == millicores


@pytest.mark.parametrize(
    ("v1", "file", "text", "kibibytes"),
    [
        pytest.param((), "memory.max", "524288", 512, id="v2"),
        pytest.param((), "memory.max", "max", 1000, id="v2 without a limit"),
        pytest.param((), "memory.max", "10737418240", 1000, id="more than the machine has"),
        pytest.param(("memory",), "memory.limit_in_bytes", "524288", 512, id="v1"),
        pytest.param(("memory",), "memory.limit_in_bytes", "9223372036854771712", 1000, id="v1 without a limit"),
    ],
)
def test_a_container_with_limited_memory_has_no_more_to_promise(
    machine: Path, v1: tuple[str, ...], file: str, text: str, kibibytes: int
) -> None:
    where = cgroup_tree(machine / "cgroup", {}, v1=v1)
    Path(where.file("memory", "", file)).write_text(f"{text}\n")
    facts = discover("n1", where, Files(), str(machine))
    assert facts.capacity.memory == kibibytes * 1024
    Path(where.file("memory", "", file)).write_text("102400\n")
    assert refresh(facts, where, Files(), str(machine)).memory == 102400


@pytest.mark.host
def test_what_the_kernel_limits_at_the_top_is_all_there_is(own_tree: tuple[Hierarchies, str]) -> None:
    hierarchies, path = own_tree
    memory = hierarchies.mount("memory")
    if memory is None:
        pytest.skip("Unsupported: no memory controller is mounted")
    inside = Hierarchies({"memory": replace(memory, path=hierarchies.directory("memory", path))})
    whole = discover("here", inside, Files()).memory
    name = "memory.limit_in_bytes" if memory.version == 1 else "memory.max"
    Path(inside.file("memory", "", name)).write_text(str(64 << 20))
    assert discover("here", inside, Files()).memory == 64 << 20 < whole


def test_without_cpusets_what_confines_the_first_process_confines_all(machine: Path) -> None:
    put(machine, "proc/1/status", "Name:\tinit\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1")
    assert discover("n1", Hierarchies({}), Files(), str(machine)).cpus == {0, 1}


def test_the_node_is_measured(machine: Path) -> None:
    sensor = NodeSensor(Files(), Hierarchies({}), str(machine))
    first = {metric for _, metric, _ in sensor.sample(10.0, ())}
    assert first == {"memory.current", "memory.working_set"}
    # 3 s of user, 1 of nice, 1 of system, 1 of softirq in 4 s; idle, iowait, steal and guest are no work
    busy = [3 * HZ, HZ, HZ, 50 * HZ, 20 * HZ, 0, HZ, 30 * HZ, 2 * HZ, 0]
    put(machine, "proc/stat", "cpu  " + " ".join(map(str, busy)))
    put(machine, "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000")
    samples = list(sensor.sample(14.0, ()))
    assert {target for target, _, _ in samples} == {NODE}
    assert {metric: value for _, metric, value in samples} == {
        "cpu.usage": pytest.approx(1.5),
        "memory.current": 600 * 1024.0,
        "memory.working_set": 300 * 1024.0,
        "cpu.pressure": 0.0,
        "memory.pressure": pytest.approx(0.25),
        "io.pressure": 0.0,
    }


def test_work_on_cpus_that_nothing_here_may_use_is_no_use_of_this_node(machine: Path) -> None:
    """CPUs 2, 3 and 8 are isolated and busy: best effort would be left nothing for ever."""
    put(machine, "sys/devices/system/cpu/isolated", "2-3,8")
    sensor = NodeSensor(Files(), hierarchies(machine), str(machine))
    for now, busy in ((1.0, 0), (2.0, HZ)):
        lines = [f"cpu  {4 * busy} 0 0 0 0 0 0 0 0 0", f"cpu0 {busy} 0 0 0 0 0 0 0 0 0"]
        lines += [f"cpu{n} {busy if n > 1 else 0} 0 0 0 0 0 0 0 0 0" for n in (1, 2, 3, 8)]
        put(machine, "proc/stat", "\n".join(lines))
        sampled = {metric: value for _, metric, value in sensor.sample(now, ())}
    assert sampled["cpu.usage"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("v1", "quota", "used"),
    [
        pytest.param((), {"cpu.max": "200000 100000"}, ("cpu", "cpu.stat", "usage_usec {}000000"), id="v2"),
        pytest.param(
            ("cpu", "cpuacct"),
            {"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000"},
            ("cpuacct", "cpuacct.usage", "{}000000000"),
            id="v1",
        ),
    ],
)
def test_in_a_container_with_a_quota_its_own_use_is_measured(
    machine: Path, v1: tuple[str, ...], quota: dict[str, str], used: tuple[str, str, str]
) -> None:
    """What others on the machine use is no use of what the container may."""
    where = cgroup_tree(machine / "cgroup", {}, v1=v1)
    for name, text in quota.items():
        Path(where.file("cpu", "", name)).write_text(f"{text}\n")
    sensor = NodeSensor(Files(), where, str(machine))
    for now in (1, 2):
        put(machine, "proc/stat", f"cpu  {now * 40 * HZ} 0 0 0 0 0 0 0 0 0")
        Path(where.file(used[0], "", used[1])).write_text(used[2].format(now) + "\n")
        sampled = {metric: value for _, metric, value in sensor.sample(float(now), ())}
    assert sampled["cpu.usage"] == pytest.approx(1.0)


def test_a_kernel_without_pressure_is_measured_without_it(machine: Path) -> None:
    for pressure in ("cpu", "memory", "io"):
        (machine / "proc/pressure" / pressure).unlink()
    sensor = NodeSensor(Files(), Hierarchies({}), str(machine))
    list(sensor.sample(1.0, ()))
    assert {metric for _, metric, _ in sensor.sample(2.0, ())} == {"cpu.usage", "memory.current", "memory.working_set"}


def test_this_machine_has_facts() -> None:
    facts = discover("here", Hierarchies.discover(), Files())
    assert len(facts.cpus) >= 1
    assert facts.memory > 1 << 27
    assert facts.kernel == os.uname().release
