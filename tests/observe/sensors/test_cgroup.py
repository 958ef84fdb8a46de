"""The cgroup sensor on trees that are written by hand, and on the real kernel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.model import knob
from j10ce.model.knob import TargetId, part
from j10ce.model.workload import Handle, Part, Workload
from j10ce.observe.sensors.cgroup import SLOW_EVERY, CgroupSensor
from j10ce.testing.build import ceiling, handle, workload
from j10ce.testing.cgroup_tree import cgroup_tree

V1 = ("cpu", "cpuacct", "cpuset", "memory")
WEB = workload("web", handle=handle("web"))
PSI = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7"

Write = Callable[[str, str], None]


class Tree:
    """One cgroup, `web`, whose files tests change as the kernel would."""

    def __init__(self, root: Path, v1: bool) -> None:
        self.v1 = v1
        files = self._files(usage_us=0, periods=0, throttled=0, memory=0, inactive=0, stalled_us=0)
        self.hierarchies = cgroup_tree(root, {"web": files}, v1=V1 if v1 else (), unified=True)
        self.root = root
        self.sensor = CgroupSensor(self.hierarchies, Files())

    def set(self, **counters: int) -> None:
        for name, text in self._files(**counters).items():
            controller = name.split(".")[0] if self.v1 and "pressure" not in name else "unified"
            (self.root / controller / "web" / name).write_text(f"{text}\n")

    def _files(
        self, *, usage_us: int, periods: int, throttled: int, memory: int, inactive: int, stalled_us: int
    ) -> dict[str, str]:
        pressure = {f"{p}.pressure": PSI.format(stalled_us) for p in ("cpu", "memory", "io")}
        quota = f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 9"
        if self.v1:
            return {
                "cpuacct.usage": str(usage_us * 1000),
                "cpu.stat": quota,
                "memory.usage_in_bytes": str(memory),
                "memory.stat": f"cache 1\ninactive_file 3\ntotal_cache 2\ntotal_inactive_file {inactive}\ntotal_x 0",
                **pressure,
            }
        return {
            "cpu.stat": f"usage_usec {usage_us}\nuser_usec 1\n{quota}",
            "memory.current": str(memory),
            "memory.stat": f"anon 5\ninactive_anon 4\ninactive_file {inactive}\nslab 1",
            **pressure,
        }

    def sample(self, now: float, *workloads: Workload) -> dict[str, float]:
        samples = list(self.sensor.sample(now, workloads or (WEB,)))
        assert {s.target for s in samples} <= {WEB.target}
        return {s.metric: s.value for s in samples}


@pytest.fixture(params=["v1", "v2"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    return Tree(tmp_path, v1=request.param == "v1")


def test_every_metric_is_measured_within_ten_samples(tree: Tree) -> None:
    seen: dict[str, float] = {}
    for n in range(2 * SLOW_EVERY + 1):
        tree.set(
            usage_us=n * 1_500_000, periods=n * 10, throttled=n * 4, memory=5000, inactive=1200, stalled_us=n * 250_000
        )
        seen |= tree.sample(100.0 + n)
    assert seen == {
        "cpu.usage": pytest.approx(1.5),
        "cpu.throttled": pytest.approx(0.4),
        "memory.current": 5000.0,
        "memory.working_set": 3800.0,
        "cpu.pressure": pytest.approx(0.25),
        "memory.pressure": pytest.approx(0.25),
        "io.pressure": pytest.approx(0.25),
    }


def test_a_counter_needs_two_readings(tree: Tree) -> None:
    first = tree.sample(1.0)
    assert "cpu.usage" not in first
    assert "cpu.throttled" not in first
    assert tree.sample(2.0)["cpu.usage"] == 0.0


def test_a_counter_that_went_back_gives_no_sample(tree: Tree) -> None:
    quiet = {"periods": 0, "throttled": 0, "memory": 0, "inactive": 0, "stalled_us": 0}
    tree.set(usage_us=9_000_000, **quiet)
    tree.sample(1.0)
    tree.set(usage_us=1_000_000, **quiet)
    assert "cpu.usage" not in tree.sample(2.0)
    tree.set(usage_us=1_500_000, **quiet)
    assert tree.sample(3.0)["cpu.usage"] == pytest.approx(0.5)


def test_a_clock_that_stands_still_gives_no_rate(tree: Tree) -> None:
    tree.sample(5.0)
    assert "cpu.usage" not in tree.sample(5.0)


def test_a_workload_that_was_never_there_yields_nothing(tree: Tree) -> None:
    assert not list(tree.sensor.sample(1.0, [workload("ghost", handle=handle("ghost"))]))


def test_workloads_take_turns_with_the_costly_files(tree: Tree) -> None:
    many = [workload(f"w{n}", handle=handle("web")) for n in range(2 * SLOW_EVERY)]
    tree.sensor.sample(0.0, many)
    for now in range(1, SLOW_EVERY + 1):
        slow = [s for s in tree.sensor.sample(float(now), many) if s.metric == "memory.working_set"]
        assert len(slow) == 2


def test_our_own_groups_are_sampled_wholly_every_time(tmp_path: Path) -> None:
    tree, tier = Tree(tmp_path, v1=True), knob.group("web")
    sensor = CgroupSensor(tree.hierarchies, Files(), lambda: {tier: Handle("web")})
    sensor.sample(0.0, ())
    for now in range(1, 4):
        samples = {s.metric for s in sensor.sample(float(now), ())}
        assert {"memory.working_set", "memory.pressure", "cpu.throttled"} <= samples


def test_an_adopted_cgroup_may_lie_elsewhere_in_one_hierarchy(tmp_path: Path) -> None:
    tree = Tree(tmp_path, v1=True)
    odd = workload("web", handle=Handle(path="gone", paths={"memory": "web"}, made=False))
    tree.set(usage_us=0, periods=0, throttled=0, memory=4096, inactive=0, stalled_us=0)
    assert tree.sample(1.0, odd) == {"memory.current": 4096.0}


def test_descriptors_of_workloads_that_went_are_given_back(tmp_path: Path) -> None:
    tree, files = Tree(tmp_path, v1=True), Files()
    sensor = CgroupSensor(tree.hierarchies, files)
    for now in range(SLOW_EVERY + 1):
        sensor.sample(float(now), (WEB,))
    assert len(files) == 7
    sensor.sample(99.0, ())
    assert len(files) == 0


def test_a_thousand_workloads_fit_in_a_small_budget(tmp_path: Path) -> None:
    tree, files = Tree(tmp_path, v1=True), Files(limit=64)
    sensor = CgroupSensor(tree.hierarchies, files)
    many = [workload(f"w{n}", handle=handle("web" if n % 2 else f"w{n}")) for n in range(1000)]
    for now in range(3):
        samples = sensor.sample(float(now), many)
    assert len(files) <= 64
    assert sum(s.metric == "cpu.usage" for s in samples) == 500


@pytest.mark.host
def test_real_cgroups_are_sampled_until_they_vanish(own_tree: tuple[Hierarchies, str]) -> None:
    hierarchies, path = own_tree
    sensor, w = CgroupSensor(hierarchies, Files()), workload("web", handle=handle(path))
    metrics: set[str] = set()
    for now in range(2 * SLOW_EVERY + 1):
        metrics |= {s.metric for s in sensor.sample(float(now), (w,))}
    assert {"cpu.usage", "cpu.throttled", "memory.current", "memory.working_set"} <= metrics
    for controller in hierarchies.in_use():
        Path(hierarchies.directory(controller, path)).rmdir()
    assert not list(sensor.sample(100.0, (w,)))


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
def test_a_container_with_a_limit_is_measured_on_every_sample_and_its_memory_in_its_turn(
    tmp_path: Path, v1: bool
) -> None:
    tree = Tree(tmp_path, v1)
    pod = limited("500m")
    inner = part("default", "pod", "main")
    measured = []
    for second in range(SLOW_EVERY + 1):
        tree.set(
            usage_us=250_000 * second,
            periods=10 * second,
            throttled=5 * second,
            memory=1000,
            inactive=400,
            stalled_us=0,
        )
        samples = tree.sensor.sample(float(second), [pod])
        measured.append({metric: value for target, metric, value in samples if target == inner})
    busy = {"cpu.usage": pytest.approx(0.25), "cpu.throttled": pytest.approx(0.5)}
    memory = {"memory.current": 1000.0, "memory.working_set": 600.0}
    assert all(round_.items() >= busy.items() for round_ in measured[1:])
    assert [round_ for round_ in measured[1:] if round_.keys() - busy.keys()] == [busy | memory]


def test_a_container_without_a_limit_is_measured_in_its_turn_only(tmp_path: Path) -> None:
    tree = Tree(tmp_path, False)
    inner = part("default", "pod", "main")
    turns = 0
    for second in range(3 * SLOW_EVERY):
        turns += any(target == inner for target, _, _ in tree.sensor.sample(float(second), [limited(None)]))
    assert turns == 3


def test_containers_that_are_gone_keep_no_descriptor(tmp_path: Path) -> None:
    tree, files = Tree(tmp_path, False), Files()
    sensor = CgroupSensor(tree.hierarchies, files)
    for second in range(SLOW_EVERY):
        sensor.sample(float(second), [limited("1")])
    kept = len(files)
    sensor.sample(20.0, [replace(limited("1"), parts=())])
    assert len(files) < kept
    sensor.sample(21.0, [])
    assert len(files) == 0


def limited(cpu: str | None) -> Workload:
    """A pod without a cgroup of its own here, whose one container is in `web`."""
    return workload("pod", handle=handle("pod"), parts=(Part("main", handle("web"), limits=ceiling(cpu)),))


def test_who_is_looked_at_closely_has_its_pressure_read_on_every_other_sample(tmp_path: Path) -> None:
    tree = Tree(tmp_path, v1=True)
    sensor = CgroupSensor(tree.hierarchies, Files(), closely=lambda: {WEB.target})
    seen = [{s.metric for s in sensor.sample(float(now), [WEB])} for now in range(1, 3 * SLOW_EVERY)]
    assert sum("cpu.pressure" in metrics for metrics in seen[SLOW_EVERY:]) == SLOW_EVERY - 1
    assert not any("cpu.pressure" in one and "cpu.pressure" in other for one, other in pairwise(seen))


@pytest.mark.parametrize(
    ("v1", "stat"),
    [
        pytest.param(True, "x 1\nworkingset_refault_file 9\ntotal_workingset_refault_anon {}\n", id="v1"),
        pytest.param(False, "anon 1\nworkingset_refault_file {}\npgscan_direct {}\n", id="v2"),
    ],
)
def test_refaults_and_direct_reclaim_are_rates_of_memory_stat(tmp_path: Path, v1: bool, stat: str) -> None:
    tree = Tree(tmp_path, v1=v1)
    sensor = CgroupSensor(tree.hierarchies, Files(), closely=lambda: {WEB.target})
    file = tmp_path / ("memory" if v1 else "unified") / "web" / "memory.stat"
    seen: dict[str, float] = {}
    for n in range(5):
        file.write_text(stat.format(100 * n, 100 * n))
        seen |= {s.metric: s.value for s in sensor.sample(float(n), [WEB])}
    assert seen["memory.refaults"] == pytest.approx(100.0)
    assert seen.get("memory.direct_reclaim") == (None if v1 else pytest.approx(100.0))


@pytest.mark.parametrize("v1", [False, True], ids=["v2", "v1"])
def test_memory_that_a_controller_asks_for_is_measured_on_that_sample(tmp_path: Path, v1: bool) -> None:
    tree, asked = Tree(tmp_path, v1=v1), set[TargetId]()
    sensor = CgroupSensor(tree.hierarchies, Files(), asked=lambda: asked)
    file = tmp_path / ("memory" if v1 else "unified") / "web" / "memory.stat"
    total = "total_" if v1 else ""
    cache = "cache" if v1 else "file"
    counts = {cache: 3500, "shmem": 500, "inactive_file": 7, "workingset_refault_file": 3}
    file.write_text("anon 1\n" + "".join(f"{total}{name} {count}\n" for name, count in counts.items()))
    rest = {"memory.working_set", "memory.refaults", "memory.pressure"}

    def rounds(since: float) -> list[dict[str, float]]:
        every = (sensor.sample(since + n, [WEB]) for n in range(SLOW_EVERY))
        return [{s.metric: s.value for s in samples} for samples in every]

    rounds(0.0)
    usual = rounds(20.0)
    assert [rest <= seen.keys() for seen in usual].count(True) == 1
    assert not any("memory.file" in seen for seen in usual), "nobody asked for it"
    asked.add(WEB.target)
    wanted = rounds(40.0)
    assert all(rest <= seen.keys() and seen["memory.file"] == 3000.0 for seen in wanted)
    assert ["io.pressure" in seen for seen in wanted].count(True) == 1, "of memory alone"
    asked.clear()
    assert not any("memory.file" in seen for seen in rounds(60.0))
