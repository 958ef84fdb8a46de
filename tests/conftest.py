"""Rules for every suite: which tests run where, and when a skip is a failure.

A test under tests/enforce is marked `host` (unless it says `vm`), a test under tests/systemd `vm_systemd`, one under
tests/kube `kube` (but for tests/kube/client, which plays the API server itself), those under tests/etcd, tests/fleet
and tests/store/etcd `lab`.

A test may skip only because a probe says that this machine lacks a feature, with a reason that starts with
"Unsupported:".  With CI=true any other skip fails the run, and so does a missing cgroup file in a guest, whose kernel
is known to have it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LAB = os.environ.get("J10CE_LAB", "")  # the kind of guest, or empty on the host
CI = os.environ.get("CI") == "true"

# Stock Debian kernels are built without these.
LACKING_IN_GUEST = ("io.latency", "memory.zswap", "cpu.uclamp", "core_sched", "resctrl")
# No mainline kernel has these.
LACKING_IN_GUEST += ("cpu.bvt_warp_ns", "memory.wmark_", "memory.priority", "memory.use_priority_oom")
LACKING_IN_GUEST += ("memory.pagecache_limit.", "kernel.sched_", "mm.memcg_reaper", "mm.pagecache_limit.")
KERNEL_FILE = re.compile(r"Unsupported: ((?:cpu|cpuset|memory|io|pids|cgroup)\.[a-z_.]+)")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores Ctrl-C, and nohup hang-ups; every command that the tests start would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if config.pluginmanager.has_plugin("hypothesispytest"):
        from hypothesis import Phase, settings  # too heavy to import in a guest

        settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, print_blob=True)
        settings.register_profile("dev", deadline=None, max_examples=50)
        settings.register_profile("soak", deadline=None, max_examples=2000, print_blob=True)
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("first", deadline=None, max_examples=300, derandomize=True, phases=phases)
        settings.load_profile(os.environ.get("J10CE_EXAMPLES") or ("ci" if CI else "dev"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder, room, *_ = *item.path.relative_to(TESTS).parts, ""
        if folder == "enforce" and item.get_closest_marker("vm") is None:
            item.add_marker(pytest.mark.host)
        elif folder == "systemd":
            item.add_marker(pytest.mark.vm_systemd)
        elif folder == "kube" and room != "client":
            item.add_marker(pytest.mark.kube)
        elif folder in ("etcd", "fleet") or (folder, room) == ("store", "etcd"):
            item.add_marker(pytest.mark.lab)
        if needs := missing_for(item):
            item.add_marker(pytest.mark.skip(reason=f"Unsupported: {needs}"))


def missing_for(item: pytest.Item) -> str | None:
    if item.get_closest_marker("vm_systemd") and LAB != "systemd":
        return "this test needs the systemd guest: make test-systemd"
    if item.get_closest_marker("vm") and LAB not in ("v2", "hybrid"):
        return "this test needs the plain guest: make test-vm"
    if item.get_closest_marker("host") and os.geteuid() != 0:
        return "changing kernel settings needs root"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        fail_if_unexpected(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if CI and report.skipped:
        fail_if_unexpected(report)
    return report


def fail_if_unexpected(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if complaint := objection(reason):
        report.outcome = "failed"
        report.longrepr = f"{complaint}: {reason}"


def objection(reason: str) -> str | None:
    if not reason.startswith("Unsupported:"):
        return "skipped in CI without naming what the machine lacks"
    match = KERNEL_FILE.match(reason)
    if match and LAB in ("v2", "systemd") and not match[1].startswith(LACKING_IN_GUEST):
        return "the guest's kernel has this"
    return None


@pytest.fixture(scope="session")
def clone() -> Path:
    """The root of the clone."""
    return TESTS.parent


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter that child processes of a test run."""
    return sys.executable
