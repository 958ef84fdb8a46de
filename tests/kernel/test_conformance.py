"""The fake kernel and the file back end on a paper tree pass what the real kernel passes in tests/enforce."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from j10ce.host.mounts import IN_USE
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.testing.cgroup_tree import cgroup_tree, fresh
from j10ce.testing.conformance_kernel import BackendConformance, Bench, TreeConformance, furnish
from j10ce.testing.fake_kernel import FakeKernel


class TestFakeKernel(BackendConformance, TreeConformance):
    @pytest.fixture(params=["v1", "v2"])
    def kernel(self, request: pytest.FixtureRequest) -> FakeKernel:
        return FakeKernel(request.param)

    @pytest.fixture
    def bench(self, kernel: FakeKernel) -> Bench:
        return furnish(kernel, kernel, "j10ce")

    @pytest.fixture
    def pid(self) -> int:
        return 4711

    @pytest.fixture
    def leave(self, kernel: FakeKernel) -> Callable[[int], None]:
        def leave(pid: int) -> None:
            for cgroup in kernel.cgroups.by_path.values():
                cgroup.pids.discard(pid)

        return leave


class TestFilesOnDisk(BackendConformance):
    @pytest.fixture(params=["v1", "v2", "hybrid"])
    def bench(self, request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
        v1 = {"v1": IN_USE, "v2": (), "hybrid": ("cpu", "cpuacct", "cpuset")}[request.param]
        files = {**fresh(2), **fresh(1)}
        hierarchies = cgroup_tree(tmp_path, {**fresh(1), "j10ce": {**files, "child": files}}, v1=v1)
        return Bench(PlainTree(hierarchies), CgroupFiles(hierarchies), "j10ce", enforcing=False)
