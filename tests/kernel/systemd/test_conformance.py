"""Unit properties pass what every back end passes; the same suite runs on a real systemd in tests/systemd."""

from __future__ import annotations

import pytest

from j10ce.model.knob import group
from j10ce.model.workload import Handle
from j10ce.testing.conformance_kernel import BackendConformance, Bench
from tests.kernel.systemd.systemd_host import Host


class UnitBench(Bench):
    """The child is a slice: a cgroup below ours that is no unit is not made here."""

    @property
    def child(self) -> Handle:
        return self.tree.path_for("standard", "", "")


class TestOnFakeSystemd(BackendConformance):
    @pytest.fixture
    def bench(self, host: Host) -> Bench:
        for at in (host.tree.path_for("", "", ""), host.tree.path_for("standard", "", "")):
            host.tree.make(group(at.path), at)
        return UnitBench(host.tree, host.backend, "j10ce.slice", enforcing=False)
