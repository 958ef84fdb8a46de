"""Whatever real-time threads do, and whoever of keeper and agent is stopped or killed: fair tasks run in every second,
and after `revert` policies and budgets are as they were."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from j10ce.kernel.realtime.machine import OURS, Linux
from j10ce.model.workload import Handle
from tests.cli.session import eventually
from tests.enforce.product import Product
from tests.enforce.realtime.test_real_product import ASKED, NAPS, becomes, keepers, policies
from tests.enforce.realtime.test_real_product import product as product  # the fixture
from tests.enforce.workbench import PATIENCE_S, Workbench

pytestmark = [pytest.mark.slow, pytest.mark.real_cpus, pytest.mark.timeout(1500)]
CPUS = os.cpu_count() or 1
KILLS = 30
SECONDS = 10
# Content with little, in a group of the greatest weight: what else is fair on this machine is not what is asked.
MOST = 262144.0
FAIR = """
import os, time
os.sched_setaffinity(0, {%d})
while True:
    time.sleep(0.02)
    sum(range(2000))
"""
ALL_SPIN = f"""
import os
for _ in range({4 * CPUS - 1}):
    if not os.fork(): break
while True: pass
"""
BOMB = f"""
import os
for _ in range({4 * CPUS - 1}):
    if not os.fork(): break
while True:
    if os.fork():
        os.wait()
    else:
        sum(range(3000))
        os._exit(0)
"""
THREADS = """
import threading, time
while True:
    for _ in range(20): threading.Thread(target=sum, args=(range(2000),)).start()
    time.sleep(0.02)
"""


class Witnesses:
    """A fair process on each CPU, looked at once a second by the kernel's count of its CPU time."""

    def __init__(self, work: Workbench) -> None:
        at = work.make("fair")
        for group in (Handle(work.top), at):
            work.set(group, "cpu.weight", MOST)
        self._fair = [work.spawn(at, FAIR % cpu) for cpu in os.sched_getaffinity(0)]
        self.seconds, self.starved = 0, list[str]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        before = self._ran()
        while not self._over.wait(1.0):
            now, self.seconds = self._ran(), self.seconds + 1
            self.starved += [f"CPU {n}, second {self.seconds}" for n in range(len(now)) if now[n] <= before[n]]
            before = now

    def _ran(self) -> list[float]:
        linux = Linux()
        return [linux.ran_s(child.pid) or 0.0 for child in self._fair]

    def close(self) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture
def witnesses(work: Workbench) -> Iterator[Witnesses]:
    one = Witnesses(work)
    yield one
    one.close()


def budgets(product: Product) -> dict[str, str]:
    """Of every group that no product made."""
    by_folder = {}
    for folder, below, _ in os.walk(product.hierarchies.directory("cpu", "")):
        below[:] = [name for name in below if not name.startswith("j10ce")]
        with suppress(OSError):  # there are none, or a group of somebody else has just gone
            by_folder[folder] = Path(folder, "cpu.rt_runtime_us").read_text()
    return by_folder


def gives_all_back(product: Product, path: str, before: dict[str, str]) -> None:
    product("revert")
    assert OURS not in policies(product, path)
    after = budgets(product)
    assert {p: after[p] for p in before if p in after} == {p: before[p] for p in before if p in after}
    own = Path(product.hierarchies.file("cpu", path, "cpu.rt_runtime_us"))
    assert not own.exists() or own.read_text() == "0\n"


@pytest.mark.parametrize("code", [ALL_SPIN, BOMB, THREADS], ids=["all spin", "fork bomb", "1,000 threads a second"])
def test_a_fair_task_runs_in_every_second_whatever_real_time_threads_do(
    product: Product, witnesses: Witnesses, code: str
) -> None:
    before = budgets(product)
    wild = ("--profile", "realtime", "--min-cpu", f"{600 * CPUS}m", "--", sys.executable, "-I", "-S", "-c", code)
    path = product.launch("wild", *wild)
    until = "real-time within its floor"
    assert eventually(lambda: until in product("explain", "wild", "sched.realtime").stdout, PATIENCE_S)
    begun = witnesses.seconds
    assert eventually(lambda: witnesses.seconds >= begun + SECONDS, PATIENCE_S)
    gives_all_back(product, path, before)
    assert not witnesses.starved


def test_whoever_is_stopped_or_killed_no_fair_task_waits_and_all_is_given_back(
    product: Product, witnesses: Witnesses
) -> None:
    before, chance = budgets(product), random.Random(17)
    path = product.launch("api", *ASKED, "--", *NAPS)
    for number in range(KILLS):
        assert becomes(product, path, OURS), f"before kill {number}"
        how, agent, keeper = chance.choice([signal.SIGSTOP, signal.SIGKILL]), product.agent_pid(), keepers(product)
        victim = chance.choice([agent, *keeper])
        os.kill(victim, how)
        if victim != agent:
            assert eventually(lambda k=keeper: keepers(product) not in ([], k), PATIENCE_S)
            continue
        assert eventually(lambda: OURS not in policies(product, path), PATIENCE_S), f"after kill {number}"
        if how == signal.SIGSTOP:
            os.kill(agent, signal.SIGCONT)
        else:
            product.launch(f"wakes-an-agent-{number}", "--", "true")
    gives_all_back(product, path, before)
    assert witnesses.seconds
    assert not witnesses.starved
