"""The fake controller of disks, and the back end on a paper tree, pass what the real kernel passes in tests/enforce."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.cost import CostFiles
from j10ce.kernel.disk.files import DiskFiles
from j10ce.testing.beside.fake_disks import FakeIo
from j10ce.testing.cgroup_tree import cgroup_tree, fresh
from j10ce.testing.conformance_disks import DiskBench, DiskConformance


class TestFakeDisks(DiskConformance):
    @pytest.fixture(params=[1, 2])
    def bench(self, request: pytest.FixtureRequest) -> DiskBench:
        io = FakeIo(request.param)
        io.make("j10ce")
        io.make("j10ce/web")
        return DiskBench(DiskFiles(io), CostFiles(io), "j10ce/web", "8:0")


class TestFilesOnDisk(DiskConformance):
    @pytest.fixture(params=[1, 2])
    def bench(self, request: pytest.FixtureRequest, tmp_path: Path) -> DiskBench:
        files = fresh(request.param, **({"io__stat": ""} if request.param == 2 else {}))
        root = {"blkio.throttle.read_bps_device": "", "j10ce": {**files, "web": files}}
        v1 = ("cpu", "cpuacct", "cpuset", "memory", "freezer", "io") if request.param == 1 else ()
        hierarchies = cgroup_tree(tmp_path, {**fresh(request.param), **root}, v1=v1)
        io = IoController(hierarchies)
        return DiskBench(DiskFiles(io), CostFiles(io), "j10ce/web", "8:0", enforcing=False)
