"""The whole product on a real kernel: real commands, the agent that `run` brings along, and what they measurably do."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.model.knob import PERIOD_US
from tests.cli.session import Running, cgroup, eventually
from tests.enforce.product import Product
from tests.enforce.workbench import PATIENCE_S, SPIN, stat

MIB = 1 << 20
SPINNER = (sys.executable, "-I", "-S", "-c", SPIN)
IDLE = ("sleep", "1000")
WINDOW_S = 4.0
CPUS = os.cpu_count() or 1


def hogs(count: int) -> tuple[str, ...]:
    """Busy loops that end together."""
    spin = f"for i in $(seq {count}); do sh -c 'while :; do :; done' & all=\"$all $!\"; done"
    return "sh", "-c", f"{spin}; trap 'kill $all' TERM; wait"


def product(folder: Path, clone: Path, name: str) -> Iterator[Product]:
    one = Product(folder, f"j10cetest-{name}-{os.getpid()}", clone)
    yield one
    one.clean()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Product]:
    """One agent, started by the first `run`, that lives as long as the module."""
    for one in product(tmp_path_factory.mktemp("host"), clone, "product"):
        one.launch("keeper", "--", *IDLE)
        yield one


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed left behind fails no other."""
    yield
    if "host" in request.fixturenames:
        shared: Product = request.getfixturevalue("host")
        if left := set(shared.names()) - {"keeper"}:
            shared.end(*left)


@pytest.fixture
def fresh(tmp_path: Path, clone: Path) -> Iterator[Product]:
    """One for a test that ends its agent."""
    yield from product(tmp_path, clone, "fresh")


# ---------------------------------------------------------------------- effects


def test_a_cpu_floor_holds_beside_hogs_of_other_tiers(host: Product) -> None:
    """With equal weights more than twice as many loops as CPUs leave each of them less than half a CPU."""
    web = host.launch("web", "--profile", "ls", "--min-cpu", "750m", "--", *SPINNER)
    host.launch("crunch", "--profile", "be", "--", *hogs(CPUS + 1))
    host.launch("build", "--profile", "burstable", "--", *hogs(CPUS + 1))
    assert eventually(lambda: host.cpu_s(web) > 0.5, PATIENCE_S)
    parts: list[float] = []

    def has_its_floor() -> bool:
        """What else begins to run on the machine counts when it was seen, within three seconds."""
        parts.append(host.cpus(web, WINDOW_S))
        return parts[-1] >= 0.75

    held = eventually(has_its_floor, PATIENCE_S)
    print(f"floor 750m beside {2 * CPUS + 2} hogs on {CPUS} CPUs: {', '.join(f'{part * 1000:.0f}m' for part in parts)}")
    assert held
    assert eventually(lambda: "the floor holds" in host.says("explain", "web")), host.says("explain", "web")
    host.end("web", "crunch", "build")


def test_best_effort_gives_way_to_what_nobody_manages(host: Product) -> None:
    """A floor raises our top group; while its holder sleeps, that weight must not go to best effort."""
    host.launch("asleep", "--profile", "ls", "--min-cpu", "500m", "--", *IDLE)
    host.tick()
    pinned = "import os; os.sched_setaffinity(0, {0})\n" + SPIN
    hog = host.launch("crunch", "--profile", "be", "--", *SPINNER[:-1], pinned)
    stranger = f"{host.top}-stranger"
    child = host.theirs(stranger)
    child.kill()
    spinner = Running([*SPINNER[:-1], pinned], text=True)
    host.started.append(spinner)
    for mount in host.hierarchies.in_use().values():
        (Path(mount.path) / stranger / "cgroup.procs").write_text(str(spinner.pid))
    settled = host.cpu_s(stranger) + 2.0  # its interpreter has started, and both have met on the one CPU
    assert eventually(lambda: host.cpu_s(stranger) > settled, PATIENCE_S)
    before = host.cpu_s(stranger), host.cpu_s(hog)
    assert eventually(lambda: host.cpu_s(stranger) + host.cpu_s(hog) - sum(before) > 2.0, PATIENCE_S)
    theirs, ours = host.cpu_s(stranger) - before[0], host.cpu_s(hog) - before[1]
    print(f"a stranger got {theirs / (theirs + ours):.0%} of one CPU beside best effort")
    assert theirs > 0.8 * (theirs + ours)
    host.end("asleep", "crunch")


def test_a_cpu_limit_throttles(host: Product) -> None:
    capped = host.launch("capped", "--cpu", "200m", "--", *SPINNER)
    counters = cgroup("cpu", capped) / "cpu.stat"
    assert eventually(lambda: stat(counters)["nr_throttled"] >= 3, PATIENCE_S)
    used, periods = host.cpu_s(capped), stat(counters)["nr_periods"]
    assert eventually(lambda: stat(counters)["nr_periods"] >= periods + 20, PATIENCE_S)
    share = (host.cpu_s(capped) - used) / ((stat(counters)["nr_periods"] - periods) * PERIOD_US / 1e6)
    print(f"limit 200m: {share * 1000:.0f}m, throttled {stat(counters)['nr_throttled']} times")
    assert 0.1 < share < 0.25
    host.end("capped")


def test_whole_cpus_are_the_workloads_own(host: Product) -> None:
    host.launch("crunch", "--profile", "be", "--", *IDLE)
    host.launch("db", "--profile", "lse", "--min-cpu", "1", "--", *IDLE)
    own, others = affinity(host, "db"), affinity(host, "crunch")
    print(f"exclusive {own}, best effort {others}")
    assert len(own) == 1
    assert others == set(range(CPUS)) - own
    assert affinity(host, "keeper") == others, "everyone else of ours keeps off an exclusive CPU"
    host.end("db")
    assert eventually(lambda: affinity(host, "crunch") == affinity(host, "keeper") == own | others)
    host.end("crunch")


def test_reserved_cpus_are_its_own_and_lent_to_best_effort_that_gives_way(host: Product) -> None:
    host.launch("crunch", "--profile", "be", "--", *IDLE)
    host.launch("cache", "--profile", "lsr", "--min-cpu", "1", "--", *IDLE)
    every, own = set(range(CPUS)), affinity(host, "cache")
    assert len(own) == 1
    assert affinity(host, "keeper") == every - own
    assert affinity(host, "crunch") == every
    host.end("crunch", "cache")


def affinity(host: Product, name: str) -> set[int]:
    path = host.json("get", "workloads", name)["status"]["cgroup"]
    pid = int((cgroup("cpuset", path) / "cgroup.procs").read_text().split()[0])
    return os.sched_getaffinity(pid)


READ = "import os, sys\nf = os.open(sys.argv[1], os.O_RDONLY)\nwhile os.read(f, 1 << 18): pass\n"


def resident(host: Product, disk: Path, *promise: str) -> float:
    """The share of a working set that stays in memory while a neighbour streams through the rest of the room."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    wait = f"{READ}import time; time.sleep(1000)"
    web = host.launch("web", *promise, "--", sys.executable, "-I", "-S", "-c", wait, str(disk / "working-set"))
    counters, room = cgroup("memory", web) / "memory.stat", cgroup("memory", host.top) / "memory.max"
    size = (disk / "working-set").stat().st_size
    assert eventually(lambda: stat(counters)["file"] > 0.9 * size, PATIENCE_S)
    before = stat(counters)["file"]
    present = int((cgroup("memory", host.top) / "memory.current").read_text())
    room.write_text(str(present + 24 * MIB))
    host("run", "--", sys.executable, "-I", "-S", "-c", READ, str(disk / "stream"))
    kept = stat(counters)["file"] / before
    room.write_text("max")
    host.end("web")
    return kept


def test_a_memory_floor_keeps_the_working_set_or_says_that_it_cannot(
    host: Product, request: pytest.FixtureRequest
) -> None:
    if not host.v2:
        assert_not_enforceable(host)
        return
    disk = request.getfixturevalue("disk")
    kept = resident(host, disk, "--min-memory", "32Mi")
    lost = resident(host, disk)
    print(f"working set kept under pressure: {kept:.0%} with a floor, {lost:.0%} without")
    assert kept > 0.9
    assert lost < 0.7


def assert_not_enforceable(host: Product) -> None:
    host.launch("web", "--min-memory", "32Mi", "--best-effort-minimum", "--", *IDLE)
    host.tick()
    output = host.says("explain", "web")
    assert re.search(
        r"^  memory\.min.*: not enforceable here: needs the memory controller on cgroup v2", output, re.MULTILINE
    )
    assert "`j10ce-qos doctor` says what is done instead" in output
    assert "instead: " in host.says("explain", "web", "-o", "wide")
    floor = next(f for f in host.json("get", "workloads", "web")["status"]["effective"] if f["resource"] == "memory")
    assert (floor["promised"], floor["effective"]) == ("32Mi", "0")
    assert "not enforceable here" in floor["reason"]
    host.end("web")


# ---------------------------------------------------------------------- other hands


def weight_file(host: Product, path: str) -> Path:
    folder = cgroup("cpu", path)
    return folder / ("cpu.shares" if (folder / "cpu.shares").exists() else "cpu.weight")


@pytest.mark.slow
def test_an_edit_under_a_hold_survives_and_is_undone_after_the_release(host: Product) -> None:
    file = weight_file(host, host.launch("held", "--", *IDLE))
    ours = file.read_text()
    host("hold", "held", "cpu.weight", "--for", "10m", "--why", "incident 42")
    file.write_text("77")
    assert eventually(lambda: any("held cpu.weight" in s for s in host.drifts()), PATIENCE_S), "the sweep has seen it"
    host.tick()
    assert file.read_text() == "77\n"
    assert "incident 42" in host.says("explain", "held", "cpu.weight")
    host("release", "held", "cpu.weight")
    assert eventually(lambda: file.read_text() == ours, PATIENCE_S)
    host.end("held")


@pytest.mark.slow
def test_a_contested_setting_is_reasserted_three_times_then_yielded(host: Product) -> None:
    file = weight_file(host, host.launch("contested", "--", *IDLE))
    ours = file.read_text()
    for _ in range(3):
        file.write_text("55")
        assert eventually(lambda: file.read_text() == ours, PATIENCE_S)
    file.write_text("55")
    assert eventually(lambda: any(d["yielded"] for d in host.drifts().values()), PATIENCE_S)
    host.tick()
    assert file.read_text() == "55\n"
    status = host.says("status")
    assert re.search(r"yielded: someone else set cpu.weight to \d+ again after 3 re-assertions", status), status
    host.end("contested")


def test_disarmed_nothing_is_written_until_armed_again(host: Product) -> None:
    path = f"{host.top}-disarmed"
    host.theirs(path)
    before = host.settings(path)
    host("disarm")
    host.adopt(path, "disarmed", "--profile", "be")
    host.tick()
    assert host.settings(path) == before
    assert host.json("status")["armed"] is False
    host("arm")
    assert eventually(lambda: host.settings(path) != before)
    host("forget", "disarmed")
    assert host.settings(path) == before


def test_a_floor_that_an_ancestor_annuls_is_reported_with_the_reason(host: Product) -> None:
    parent = f"{host.top}-narrow"
    host.theirs(f"{parent}/db")
    quota = cgroup("cpu", parent) / ("cpu.max" if host.v2 else "cpu.cfs_quota_us")
    quota.write_text("30000")
    if host.v2:
        (cgroup("memory", parent) / "memory.max").write_text(str(16 * MIB))
    host.adopt(f"{parent}/db", "db", "--min-cpu", "500m", "--min-memory", "32Mi", "--best-effort-minimum")
    host.tick()
    output = host.says("explain", "db")
    assert f"of 500m: cpu.max of group/{parent} allows 300m" in output
    wanted = f"memory 16Mi of 32Mi: memory.max of group/{parent} is 16Mi" if host.v2 else "memory 0 of 32Mi: "
    assert wanted in output
    host("forget", "db")


def test_an_ancestor_that_is_not_ours_is_only_raised_to_cover_memory_and_given_back(host: Product) -> None:
    parent = f"{host.top}-above"
    host.theirs(f"{parent}/db")
    above, below = host.settings(parent), host.settings(f"{parent}/db")
    host.adopt(f"{parent}/db", "db", "--profile", "ls", "--min-memory", "32Mi", "--best-effort-minimum")
    host.tick()
    floor = cgroup("memory", parent) / "memory.min"
    assert host.settings(parent) == above | ({str(floor): f"{32 * MIB}\n"} if host.v2 else {})
    assert ("the floor holds" in host.says("explain", "db")) is host.v2
    host("forget", "db")
    assert host.settings(parent) == above
    assert host.settings(f"{parent}/db") == below


def test_what_a_command_leaves_running_stays_managed_until_it_ends(host: Product) -> None:
    daemon = ("sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 3")
    ended = host("run", "--name", "daemon", "--min-cpu", "100m", "--", *daemon, code=3)
    path = ended.stderr.split(" in ")[1].split()[0]
    host.tick()
    assert "daemon" in host.names()
    os.kill(int((cgroup("cpu", path) / "cgroup.procs").read_text()), signal.SIGTERM)
    assert eventually(lambda: "daemon" not in host.names() and not cgroup("cpu", path).exists())


# ---------------------------------------------------------------------- a killed agent


def test_killed_and_reverted_offline_every_file_is_as_it_was(fresh: Product) -> None:
    theirs = [f"{fresh.top}-theirs", f"{fresh.top}-theirs/db", f"{fresh.top}-theirs/batch"]
    for path in theirs[1:]:
        fresh.theirs(path)
        weight_file(fresh, path).write_text("321")
    before = [fresh.settings(path) for path in theirs]
    fresh.adopt(
        theirs[1], "db", "--profile", "ls", "--min-cpu", "100m", "--min-memory", "32Mi", "--best-effort-minimum"
    )
    fresh.adopt(theirs[2], "batch", "--profile", "be")
    fresh.launch("pinned", "--profile", "lse", "--min-cpu", "1", "--", *IDLE)
    fresh.tick()
    changed = [now != was for path, was in zip(theirs, before, strict=True) for now in [fresh.settings(path)]]
    assert changed == [fresh.v2, True, True], "a parent that is not ours is raised for memory alone"
    os.kill(fresh.agent_pid(), signal.SIGKILL)
    output = fresh.says("revert")
    assert ", 0 left alone" in output, output
    assert [fresh.settings(path) for path in theirs] == before


def test_killed_and_started_again_no_floor_drops_on_the_way(fresh: Product) -> None:
    web = fresh.launch(
        "web", "--profile", "ls", "--min-cpu", "500m", "--min-memory", "32Mi", "--best-effort-minimum", "--", *IDLE
    )
    fresh.tick()
    weights = [weight_file(fresh, path) for path in (web, os.path.dirname(web))]
    minima = [
        f for path in (web, os.path.dirname(web), fresh.top) if (f := cgroup("memory", path) / "memory.min").exists()
    ]
    default = 1024 if weights[0].name == "cpu.shares" else 100
    killed, watch = fresh.agent_pid(), Watch([*weights, *minima])
    os.kill(killed, signal.SIGKILL)
    fresh("run", "--name", "other", "--", "true")
    assert fresh.agent_pid() not in (0, killed)
    fresh.tick()
    lowest = watch.stop()
    print(f"lowest while the agent was dead and came back: {dict(zip(map(str, watch.files), lowest, strict=True))}")
    assert min(lowest[:2]) > default
    assert min(lowest[2:], default=32 * MIB) >= 32 * MIB
    assert "web" in fresh.names()
    held = "the floor holds" if fresh.v2 else "memory 0 of 32Mi: memory.min is not enforceable here"
    assert held in fresh.says("explain", "web")


class Watch:
    """The lowest number that each file held meanwhile."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.lowest = [int(f.read_text()) for f in files]
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look)
        self._looking.start()

    def _look(self) -> None:
        while not self._over.is_set():
            self.lowest = [min(low, int(f.read_text())) for low, f in zip(self.lowest, self.files, strict=True)]
            time.sleep(0.005)

    def stop(self) -> list[int]:
        self._over.set()
        self._looking.join()
        return self.lowest
