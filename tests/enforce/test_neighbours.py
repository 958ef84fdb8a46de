"""Neighbours count, on a real kernel with everyone busy: floors are kept, and nothing more than that is taken.

Measured as shares of what the parties used together, so that other load of the machine does not matter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent
from j10ce.control.builtin import build
from j10ce.daemon.clock import SystemClock
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.workload import Handle, Workload
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensors.node import discover, refresh
from j10ce.observe.siblings import Siblings
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build as make
from tests.cli.session import Running, cgroup, eventually
from tests.enforce.product import Product
from tests.enforce.test_product import hogs, weight_file
from tests.enforce.workbench import PATIENCE_S, SPIN, Workbench

pytestmark = [pytest.mark.host, pytest.mark.real_cpus]
CPUS = len(os.sched_getaffinity(0))
WHOLE = CPUS * 1000  # millicores
HEAVY = 65536.0  # shares: beside that the rest of the machine weighs little
CPU_S = 8.0  # to be used before anything is said about shares
SPINNER = ("sh", "-c", "while :; do :; done")
EXACT = 0.975  # how well the scheduler divides by weight
LONG_S = 180.0  # whatever else this machine does meanwhile
ACT = """
apiVersion: j10ce.io/v1alpha1
kind: NodeStrategy
metadata: {name: act-on-noise}
spec: {interference: {mode: act}}
"""
# Wants a CPU for eight seconds, and nothing for the next eight.
PULSE = """
import time
while True:
    time.sleep(8)
    until = time.monotonic() + 8
    while time.monotonic() < until:
        pass
"""


@pytest.fixture
def fresh(tmp_path: Path, clone: Path) -> Iterator[Product]:
    one = Product(tmp_path, f"j10cetest-near-{os.getpid()}", clone)
    yield one
    one.clean()


def spinners(host: Product, count: int, path: str = "", nice: int = 0, command: Sequence[str] = SPINNER) -> None:
    """In a cgroup, or left where this process is."""
    for _ in range(count):
        child = Running(
            ("nice", "-n", str(nice), *command), text=True, start_new_session=True
        )  # the scheduler may group those of a session
        host.started.append(child)
        for mount in host.hierarchies.in_use().values() if path else ():
            (Path(mount.path) / path / "cgroup.procs").write_text(str(child.pid))


def hush(host: Product) -> None:
    """Beside so much weight the agent itself has little time to answer."""
    for child in host.started:
        if SPINNER[-1] in map(str, child.args):  # type: ignore[arg-type]
            child.kill()
            child.wait()


def weigh(host: Product, path: str, shares: float) -> None:
    file = weight_file(host, path)
    file.write_text(str(int(shares if file.name == "cpu.shares" else shares * 100 / 1024)))


def used(host: Product, *paths: str) -> list[float]:
    """Seconds of CPU time that each used while all together used enough."""
    before = [host.cpu_s(p) for p in paths]
    assert eventually(lambda: sum(map(host.cpu_s, paths)) - sum(before) > CPU_S, PATIENCE_S)
    return [host.cpu_s(p) - b for p, b in zip(paths, before, strict=True)]


def test_an_adopted_floor_is_kept_beside_a_placed_one(fresh: Product) -> None:
    service, floor = f"{fresh.top}-service", WHOLE * 2 // 5
    fresh.theirs(f"{service}/db")
    weigh(fresh, service, HEAVY)
    job = fresh.launch("job", "--min-cpu", f"{floor}m", "--", *hogs(CPUS))
    fresh.adopt(f"{service}/db", "db", "--min-cpu", f"{floor}m")
    spinners(fresh, CPUS, f"{service}/db")
    fresh.tick(3)
    times = used(fresh, f"{service}/db", job)
    db, placed = (WHOLE * t / sum(times) for t in times)
    print(f"two floors of {floor}m: adopted {db:.0f}m, placed {placed:.0f}m")
    assert min(db, placed) >= EXACT * floor
    hush(fresh)
    fresh("forget", "db")


@pytest.mark.slow
def test_an_adopted_floor_is_kept_beside_threads_of_an_urgent_nice_value(fresh: Product) -> None:
    """They sit right in the group above it, where each has a weight of its own."""
    if fresh.hierarchies.version("cpu") == 2:
        pytest.skip("Unsupported: processes beside cgroups below the root need cgroup v1")
    service, floor = f"{fresh.top}-service", WHOLE * 2 // 5
    fresh.theirs(f"{service}/db")
    weigh(fresh, service, HEAVY)
    spinners(fresh, CPUS, f"{service}/db")
    spinners(fresh, CPUS, service, nice=-15)
    fresh.adopt(f"{service}/db", "db", "--min-cpu", f"{floor}m")
    fresh.tick(3)
    db, everyone = used(fresh, f"{service}/db", service)
    print(f"beside threads of nice -15 a floor of {floor}m has {WHOLE * db / everyone:.0f}m")
    assert WHOLE * db / everyone >= EXACT * floor
    hush(fresh)
    fresh("forget", "db")


def test_whoever_is_unmanaged_keeps_all_that_a_floor_does_not_need(fresh: Product) -> None:
    """Every thread of the machine that is not ours counts as unmanaged: those of this test, so many that others do not
    matter, and what else runs meanwhile."""
    floor, many = WHOLE // 10, 24 * CPUS
    job = fresh.launch("job", "--min-cpu", f"{floor}m", "--", *hogs(CPUS))
    spinners(fresh, many)
    top = weight_file(fresh, fresh.top)
    per_share = 1 if top.name == "cpu.shares" else 10.24
    # A tenth of the machine beside those threads is a ninth of their weight.
    assert eventually(lambda: int(top.read_text()) * per_share >= many * 1024 / 9, PATIENCE_S)
    parts: list[float] = []

    def has_its_floor() -> bool:
        """What else begins to run on the machine counts when it was seen, within three seconds."""
        before, ours_before = fresh.cpu_s(""), fresh.cpu_s(job)
        assert eventually(lambda: fresh.cpu_s("") - before > CPU_S, PATIENCE_S)
        parts.append(WHOLE * (fresh.cpu_s(job) - ours_before) / (fresh.cpu_s("") - before))
        return parts[-1] >= EXACT * floor

    held = eventually(has_its_floor, PATIENCE_S)
    print(f"a floor of {floor}m beside {many} busy sessions has {', '.join(f'{part:.0f}m' for part in parts)}")
    assert held
    assert max(parts) <= 1.5 * floor, "the unmanaged keep the rest"


@pytest.mark.slow
def test_empty_groups_take_nothing_from_whoever_is_unmanaged(fresh: Product) -> None:
    busy, floor = f"{fresh.top}-busy", WHOLE // 10
    fresh.theirs(busy)
    for name in (busy, *(f"{fresh.top}-forgotten{n}" for n in range(3))):
        group = cgroup("cpu", name)
        group.mkdir(exist_ok=True)
        fresh.made.append(group)
        weigh(fresh, name, HEAVY)
    spinners(fresh, CPUS, busy)
    job = fresh.launch("job", "--min-cpu", f"{floor}m", "--", *hogs(CPUS))
    fresh.tick(3)
    theirs, ours = used(fresh, busy, job)
    print(f"beside a floor of {floor}m a busy group has {WHOLE * theirs / (theirs + ours):.0f}m of {WHOLE}m")
    assert theirs / (theirs + ours) >= 0.8


# ---------------------------------------------------------------------- pods


class Node:
    """The ring of an agent on real cgroups, with pods that the test makes."""

    def __init__(self, work: Workbench, folder: Path) -> None:
        hierarchies, files = work.hierarchies, Files()
        top = f"{work.top}-agent"
        tree = PlainTree(hierarchies, top)
        kernel = Kernel(tree, [CgroupFiles(hierarchies)], Journal.open(folder / "journal", "boot"))
        layout = Layout(hierarchies, files, top)
        facts = discover("node", hierarchies, files)
        observer = Observer(
            facts, [], GroupTree(layout, Siblings(hierarchies)), lambda f: refresh(f, hierarchies, files)
        )
        document = NodeDocument(node="node", profiles=builtin())
        self.agent = Agent(kernel, observer, [Contained(c) for c in build({})], document)
        self.agent.armed = True
        self.clock = SystemClock()

    def arrive(self, *pods: Workload) -> None:
        self.agent.change([WorkloadEvent("ADDED", p) for p in pods], self.clock.read())
        self.agent.tick(self.clock.read())


def test_pods_with_floors_and_one_that_nobody_chose_each_have_their_own(work: Workbench, tmp_path: Path) -> None:
    """svc requests 600m of 2000m and has that as its floor, db requests 100m and has 400m, heavy requests 500m."""
    amounts = {"svc": (0.30, 0.30), "db": (0.05, 0.20), "heavy": (0.25, 0.0)}  # request and floor, of the machine
    places = {name: work.make("kubepods", "burstable", f"pod{name}") for name in amounts}
    kubepods, burstable = work.make("kubepods"), work.make("kubepods", "burstable")
    work.set(work.make(), "cpu.weight", HEAVY)
    work.set(kubepods, "cpu.weight", HEAVY)
    work.set(burstable, "cpu.weight", HEAVY)
    for name, (request, _) in amounts.items():
        work.set(places[name], "cpu.weight", float(round(request * WHOLE * 1.024)))
        for _ in range(CPUS):
            work.spawn(places[name], SPIN)
    pods = [
        make.workload(
            name,
            profile="ls" if floor else "",
            cpu=f"{request * WHOLE:.0f}m",
            min_cpu=f"{floor * WHOLE:.0f}m",
            handle=Handle(places[name].path, made=False),
        )
        for name, (request, floor) in amounts.items()
    ]
    node = Node(work, tmp_path)
    node.arrive(*pods)
    promised = [max(request, floor) for request, floor in amounts.values()]
    work.race(*places.values(), cpu_s=2.0)  # every interpreter has started
    shares = work.race(*places.values(), cpu_s=CPU_S)
    message = ", ".join(
        f"{n} {s * WHOLE:.0f}m of {p * WHOLE:.0f}m" for n, s, p in zip(amounts, shares, promised, strict=True)
    )
    print(message)
    assert all(share >= EXACT * p for share, p in zip(shares, promised, strict=True)), message
    outcome = node.agent.kernel.revert()
    assert not outcome.refused()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_antagonist_beside_a_real_victim_is_named_and_capped(fresh: Product, tmp_path: Path) -> None:
    """Both on one CPU, in a group so heavy that nobody else on the machine matters there."""
    (tmp_path / "act.yaml").write_text(ACT)
    fresh.up()
    fresh("apply", "-f", str(tmp_path / "act.yaml"))
    service = f"{fresh.top}-service"
    pinned = ("taskset", "-c", str(max(os.sched_getaffinity(0))))
    for name, profile, command in (("victim", "ls", SPINNER), ("hog", "burstable", (sys.executable, "-c", PULSE))):
        fresh.theirs(f"{service}/{name}")
        weigh(fresh, service, HEAVY)
        spinners(fresh, 1, f"{service}/{name}", command=(*pinned, *command))
        fresh.adopt(f"{service}/{name}", name, "--profile", profile)

    def done() -> str:
        pairs = fresh.agent.get("/v1/top")["interference"]
        named = {(p["victim"], p["antagonist"]): p["action"] for p in pairs}
        return str(named.get(("default/victim", "default/hog"), ""))

    assert eventually(lambda: done().startswith("cpu.max"), LONG_S), fresh.agent.get("/v1/top")
    quota = "cpu.cfs_quota_us" if fresh.hierarchies.version("cpu") == 1 else "cpu.max"
    assert eventually(lambda: int(fresh.file(f"{service}/hog", quota).read_text().split()[0]) > 0)
    assert "hog" in fresh.says("top", "--once").partition("SUFFERS")[2]
    assert "suffers from default/hog: waits" in fresh.says("explain", "victim")
    assert "slows default/victim, which waits" in fresh.says("explain", "hog")
    assert "default/victim waits" in fresh.says("explain", "hog", "cpu.max")
