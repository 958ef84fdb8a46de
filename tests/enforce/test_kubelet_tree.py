"""A tree as kubelets make it, of cgroups that are not ours: idle pods beside a protected one, by CPU counters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.session import Running, cgroup, eventually
from tests.enforce.product import Product
from tests.enforce.test_product import CPUS, SPINNER
from tests.enforce.workbench import PATIENCE_S

RIGHT, LEAST = 1228, 2  # shares of a class: what its pods ask for, and in the minute after a kubelet's start
MEASURED_S = 4.0


@pytest.fixture
def node(tmp_path: Path, clone: Path) -> Iterator[Product]:
    one = Product(tmp_path, f"j10cetest-kubelet-{os.getpid()}", clone)
    yield one
    one.clean()


class Pods:
    def __init__(self, node: Product) -> None:
        self.node, self.top = node, f"{node.top}-kubepods"
        self.service, self.hog = f"{self.top}/burstable/pod1", f"{self.top}/besteffort/pod2"
        for pod in (self.service, self.hog):
            node.theirs(pod)
        self.weigh("", 65536)  # whatever else runs on the machine has little part in the contest
        self.weigh("/burstable", RIGHT)
        self.weigh("/besteffort", LEAST)

    def weigh(self, group: str, shares: int) -> None:
        folder = cgroup("cpu", f"{self.top}{group}")
        if (folder / "cpu.shares").exists():
            (folder / "cpu.shares").write_text(str(shares))
        else:  # as container runtimes convert shares for cgroup v2
            (folder / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))

    def spin(self, pod: str, count: int) -> None:
        for _ in range(count):
            child = Running(SPINNER, text=True)
            self.node.started.append(child)
            for mount in self.node.hierarchies.in_use().values():
                (Path(mount.path) / pod / "cgroup.procs").write_text(str(child.pid))

    def share(self) -> float:
        """Of what both use together over the next seconds of CPU time, the service's part."""
        before = self.node.cpu_s(self.service), self.node.cpu_s(self.hog)
        spent = sum(before) + MEASURED_S
        assert eventually(lambda: self.node.cpu_s(self.service) + self.node.cpu_s(self.hog) > spent, PATIENCE_S)
        got = self.node.cpu_s(self.service) - before[0]
        return got / (got + self.node.cpu_s(self.hog) - before[1])

    def quota(self) -> str:
        folder = cgroup("cpu", self.hog)
        v1 = folder / "cpu.cfs_quota_us"
        return (v1 if v1.exists() else folder / "cpu.max").read_text().split()[0]


def test_a_protected_pod_has_its_floor_though_best_effort_weighs_as_much(node: Product) -> None:
    """By weight alone both would have a half."""
    pods = Pods(node)
    node.launch("keeper", "--", "sleep", "1000")
    node.says("adopt", "--cgroup", pods.service, "--name", "svc", "--profile", "ls")
    node.says("adopt", "--cgroup", pods.hog, "--name", "hog", "--profile", "be")
    node.tick()
    unlimited = pods.quota()
    assert unlimited in ("-1", "max")
    assert "idle among its siblings" in node.says("explain", "hog")
    pods.spin(pods.service, CPUS)
    pods.spin(pods.hog, 2 * CPUS)
    pods.weigh("/burstable", LEAST)
    assert eventually(lambda: pods.quota() != unlimited, PATIENCE_S)
    # The cap follows what the pod uses, and that what the cap leaves it: the first spans are on the way.
    assert eventually(lambda: pods.share() > 0.7, PATIENCE_S)
    pods.weigh("/burstable", RIGHT)
    assert eventually(lambda: pods.quota() == unlimited, PATIENCE_S)
