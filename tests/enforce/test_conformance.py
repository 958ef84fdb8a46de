"""The real kernel passes the suite that the fake one passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from j10ce.testing.conformance_kernel import BackendConformance, Bench, TreeConformance
from tests.enforce.workbench import Workbench


class TestRealKernel(BackendConformance, TreeConformance):
    @pytest.fixture
    def bench(self, work: Workbench) -> Bench:
        work.make("child")
        return Bench(work.tree, work.backend, work.top)

    @pytest.fixture
    def pid(self, work: Workbench) -> int:
        child = work.spawn(work.make("elsewhere"), "print('here', flush=True); input()")
        assert child.stdout is not None
        child.stdout.readline()  # from here on it stays where others put it
        return child.pid

    @pytest.fixture
    def leave(self, work: Workbench) -> Callable[[int], None]:
        def leave(pid: int) -> None:
            work.end(next(p for p in work.processes if p.pid == pid))

        return leave
