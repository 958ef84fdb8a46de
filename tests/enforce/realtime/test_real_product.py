"""Profile `realtime` as a user has it: run, explain, disarm, a keeper and an agent that are killed, revert."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.realtime.machine import FAIR, OURS, Linux, WardPlace
from j10ce.kernel.realtime.nets import support
from tests.cli.session import eventually
from tests.enforce.product import Product
from tests.enforce.workbench import PATIENCE_S

NAPS = (sys.executable, "-I", "-S", "-c", "import time\nwhile True:\n    time.sleep(0.005)\n    sum(range(2000))")
ASKED = ("--profile", "realtime", "--min-cpu", "200m")
KEEPER = b"j10ce.kernel.realtime.keeper"


@pytest.fixture
def product(tmp_path: Path, clone: Path) -> Iterator[Product]:
    hierarchies = Hierarchies.discover()
    if needs := support(hierarchies).needs:
        pytest.skip(f"Unsupported: sched.realtime needs {needs}")
    one = Product(tmp_path, f"j10cetest-rt-{os.getpid()}", clone)
    yield one
    one.clean()


def policies(product: Product, path: str) -> set[int | None]:
    top, linux = product.hierarchies.directory("cpu", path), Linux()
    name = "tasks" if product.hierarchies.version("cpu") == 1 else "cgroup.threads"
    return {linux.policy(thread) for thread in linux.threads(WardPlace(top, name, "")) or ()} - {None}


def becomes(product: Product, path: str, policy: int) -> bool:
    return eventually(lambda: policies(product, path) == {policy}, PATIENCE_S)


def keepers(product: Product) -> list[int]:
    """Children of the product's agent that keep."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, fields = (entry / "cmdline").read_bytes(), (entry / "stat").read_text().rpartition(")")[2]
            except OSError:
                continue
            if KEEPER in command and int(fields.split()[1]) == product.agent_pid():
                pids.append(int(entry.name))
    return pids


def test_threads_are_real_time_until_the_agent_is_disarmed_and_again_once_it_is_armed(product: Product) -> None:
    api = product.launch("api", *ASKED, "--", *NAPS)
    assert becomes(product, api, OURS)
    said = product("explain", "api", "sched.realtime").stdout
    assert "20000 (0.2 CPUs)" in said
    assert "real-time within its floor, 0.2 CPUs" in said
    product("disarm")
    assert becomes(product, api, FAIR)
    product("arm")
    assert becomes(product, api, OURS)


def test_a_keeper_that_is_killed_or_stopped_is_replaced(product: Product) -> None:
    api = product.launch("api", *ASKED, "--", *NAPS)
    assert becomes(product, api, OURS)
    for how in (signal.SIGKILL, signal.SIGSTOP):
        before = keepers(product)
        os.kill(before[0], how)
        assert eventually(lambda b=before: keepers(product) not in ([], b), PATIENCE_S)
        assert becomes(product, api, OURS)


def test_after_an_agent_was_killed_all_are_fair_and_revert_finds_nothing_left(product: Product) -> None:
    api = product.launch("api", *ASKED, "--", *NAPS)
    assert becomes(product, api, OURS)
    os.kill(product.agent_pid(), signal.SIGKILL)
    assert becomes(product, api, FAIR)
    product("revert")
    budget = Path(product.hierarchies.file("cpu", api, "cpu.rt_runtime_us"))
    assert not budget.exists() or budget.read_text() == "0\n"


def test_a_group_inside_without_a_budget_keeps_nobody_else_from_it(product: Product) -> None:
    """As the sandbox of a pod is one."""
    if not Path(product.hierarchies.file("cpu", "", "cpu.rt_runtime_us")).exists():
        pytest.skip("Unsupported: groups have no budgets of real-time here")
    fork = f"import os\nfor _ in range(7): os.fork() or exec({NAPS[-1]!r})\n{NAPS[-1]}"
    api = product.launch("api", *ASKED, "--", *NAPS[:-1], fork)
    inside = Path(product.hierarchies.directory("cpu", api), "sandbox")
    inside.mkdir()
    product.made.append(inside)
    product("disarm")
    assert becomes(product, api, FAIR)  # the kernel moves nobody that is real-time to where nothing is left for him
    (inside / "tasks").write_text((inside.parent / "tasks").read_text().split()[0])
    product("arm")
    top, linux = WardPlace(str(inside.parent), "tasks", ""), Linux()
    assert eventually(lambda: sorted(map(linux.policy, linux.threads(top) or ())) == [FAIR] + [OURS] * 7, PATIENCE_S)  # type: ignore[type-var]
    assert "real-time within its floor" in product("explain", "api", "sched.realtime").stdout


@pytest.mark.parametrize("way", ["at once", "the next agent"])
def test_where_both_are_killed_at_once_the_next_agent_keeps_it_and_revert_ends_it(product: Product, way: str) -> None:
    api = product.launch("api", *ASKED, "--", *NAPS)
    assert becomes(product, api, OURS)
    agent, (keeper,) = product.agent_pid(), keepers(product)
    for pid, how in ((agent, signal.SIGSTOP), (keeper, signal.SIGKILL), (agent, signal.SIGKILL)):
        os.kill(pid, how)
    assert policies(product, api) == {OURS}
    if way == "the next agent":
        other = product.launch("other", "--", *NAPS)
        assert becomes(product, api, OURS)
        assert policies(product, other) == {FAIR}
        assert keepers(product)
    product("revert")
    assert policies(product, api) == {FAIR}


def test_too_much_for_the_machine_is_refused_with_numbers(product: Product) -> None:
    cpus = os.cpu_count() or 1
    path = product.launch("first", "--profile", "realtime", "--min-cpu", f"{700 * cpus}m", "--", *NAPS)
    second = product.launch("second", "--profile", "realtime", "--min-cpu", f"{100 * cpus}m", "--", *NAPS)
    assert becomes(product, path, OURS)
    assert becomes(product, second, FAIR)
    assert f"75 % of {cpus}" in product("explain", "second", "sched.realtime").stdout
