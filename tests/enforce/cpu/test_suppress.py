"""Best effort is held back on a real kernel, whatever else the machine does: by quota, by CPUs, by a buffer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from j10ce.model.knob import PERIOD_US, parse_cpus
from tests.cli.session import cgroup, eventually
from tests.enforce.product import Product
from tests.enforce.test_product import CPUS, hogs
from tests.enforce.workbench import PATIENCE_S

MEASURED_S = 3.0
OVER = 1.15  # what a quota lets through within a short time


@pytest.mark.skipif(CPUS < 2, reason="on one CPU there is nothing to choose")
@pytest.mark.parametrize(
    ("config", "most"),
    [
        pytest.param("{mode: quota, ceiling: 0.5}", CPUS / 2, id="by quota"),
        pytest.param("{mode: cpuset, ceiling: 0.5}", CPUS / 2, id="by CPUs"),
        pytest.param("{mode: buffer, reserveCpus: 1}", CPUS - 1, id="by a buffer of one CPU"),
    ],
)
def test_best_effort_leaves_the_others_what_was_said(tmp_path: Path, clone: Path, config: str, most: float) -> None:
    host = Product(tmp_path, f"j10cetest-suppress-{os.getpid()}", clone)
    (host.config_dir / "suppress.yaml").write_text(f"controllers: {{cpu-suppress: {config}}}\n")
    try:
        job = host.launch("crunch", "--profile", "be", "--", *hogs(2 * CPUS))
        tier = job.rpartition("/")[0]
        host.tick(3)
        assert eventually(lambda: _allowed(tier) <= most, PATIENCE_S), host.says("explain", "crunch")
        used = host.cpus(job, MEASURED_S)
        print(f"{config}: {_allowed(tier):.2f} CPUs allowed, {used:.2f} used")
        assert used <= most * OVER
    finally:
        host.clean()


def _allowed(path: str) -> float:
    """By quota and CPUs of a group, as the kernel has them."""
    v1, v2 = cgroup("cpu", path) / "cpu.cfs_quota_us", cgroup("cpu", path) / "cpu.max"
    quota = v1.read_text() if v1.exists() else v2.read_text().split()[0]
    cpus = len(parse_cpus((cgroup("cpuset", path) / "cpuset.cpus").read_text())) or CPUS
    return cpus if quota.strip() in ("-1", "max") else min(cpus, int(quota) / PERIOD_US)
