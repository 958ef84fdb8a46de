"""Killed, or showered with signals, at any point: a restart and a revert give back every file to the letter."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from j10ce.errors import QosError
from tests.agent.process import AgentProcess, cgroup, eventually

pytestmark = pytest.mark.host
KILLS = 30
CONTROLLERS = ("cpu", "cpuset", "memory")
COUNTERS = ("stat", "usage", "current", "pressure", "events", "failcnt", "effective", "procs", "tasks", "peak", "numa")


class Theirs:
    """A cgroup with a process and values of its own, in every hierarchy."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.folders = sorted({cgroup(c, name) for c in CONTROLLERS})
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        self._fill("cpuset.cpus", cgroup("cpuset", ""))
        self._fill("cpuset.mems", cgroup("cpuset", ""))
        (cgroup("cpu", name) / "cpu.shares").write_text("321")
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def _fill(self, file: str, root: Path) -> None:
        (cgroup("cpuset", self.name) / file).write_text((root / file).read_text())

    def texts(self) -> dict[str, str]:
        """Every file that holds a setting."""
        by_name = {}
        for folder in self.folders:
            for file in sorted(folder.iterdir()):
                if file.is_file() and os.access(file, os.W_OK) and not any(c in file.name for c in COUNTERS):
                    with suppress(OSError):  # some can only be written
                        by_name[str(file)] = file.read_text()
        return by_name

    def remove(self) -> None:
        for folder in self.folders:
            folder.rmdir()


@pytest.fixture
def theirs(agent: AgentProcess) -> Iterator[Theirs]:
    if not (cgroup("cpu", "") / "cpu.shares").exists() and not (cgroup("cpu", "") / "tasks").exists():
        pytest.skip("Unsupported: a v1 hierarchy; the guest's suites kill at every write on v2")
    one = Theirs(f"{agent.top}-theirs", agent.child())
    yield one
    agent.clean()
    one.remove()


def work(agent: AgentProcess, draw: random.Random) -> None:
    """One random order. Whatever a dying agent makes of it is its own affair."""
    n = draw.randrange(4)
    target = draw.choice(["workload/default/mine", f"workload/default/w{n}"])
    orders: list[Callable[[], Any]] = [
        lambda: agent.client.post("/v1/adopt", {"cgroup": f"{agent.top}-theirs", "name": "mine", "profile": "be"}),
        lambda: agent.client.post("/v1/adopt", {"cgroup": f"{agent.top}-theirs", "name": "mine", **LIMITED}),
        lambda: agent.client.delete("/v1/workloads/default/mine"),
        lambda: agent.place(f"w{n}", profile=draw.choice(["ls", "be", "burstable"]), minimum={"cpu": "50m"}),
        lambda: agent.client.delete(f"/v1/workloads/default/w{n}"),
        lambda: agent.client.post("/v1/holds", hold(target)),
        lambda: agent.client.delete("/v1/holds", target=target),
        lambda: agent.client.post("/v1/revert", {}),
        lambda: agent.client.post("/v1/arm", {}),
    ]
    with suppress(QosError, OSError):
        draw.choice(orders)()


LIMITED: dict[str, Any] = {"profile": "ls", "minimum": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "4Gi"}}


def hold(target: str) -> dict[str, Any]:
    return {"target": target, "knobs": ["cpu.weight"], "forSeconds": 600, "why": "test", "value": "77"}


def killer(agent: AgentProcess, writes: int) -> threading.Thread:
    """Kills the agent as soon as its journal has grown so many times: in the middle of an apply or a revert."""
    assert agent.process is not None
    victim, journal = agent.process, agent.run_dir / "journal"

    def watch() -> None:
        seen, left = -1, writes
        while left and victim.poll() is None:
            with suppress(OSError):
                size = journal.stat().st_size
                left -= size != seen
                seen = size
        victim.kill()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_thirty_kills_at_random_points_cost_no_original(agent: AgentProcess, theirs: Theirs) -> None:
    draw = random.Random(20)  # the orders are the same in every run; where they are cut off is not
    before = theirs.texts()
    assert any("cpu.shares" in name and text == "321\n" for name, text in before.items())
    changed = 0
    for _ in range(KILLS):
        agent.start()
        agent.client.post("/v1/arm", {})
        thread = killer(agent, draw.randrange(2, 12))
        assert agent.process is not None
        while agent.process.poll() is None:
            work(agent, draw)
        thread.join()
        changed += theirs.texts() != before
        agent.start()
        answer = agent.client.post("/v1/revert", {"force": True})
        assert [left for left in answer["left"] if "theirs" in str(left) or "mine" in str(left)] == []
        assert theirs.texts() == before
        agent.stop()
    assert changed > 0  # some died while the values were not their own


@pytest.mark.parametrize("last", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_storm_of_signals_is_one_signal(agent: AgentProcess, theirs: Theirs, last: signal.Signals) -> None:
    before = theirs.texts()
    agent.start()
    assert agent.process is not None
    agent.client.post("/v1/adopt", {"cgroup": theirs.name, "name": "mine", "profile": "be"})
    adopted = theirs.texts()
    assert adopted != before
    for n in range(100):
        agent.process.send_signal(signal.SIGHUP)
        if n % 20 == 0:
            agent.place(f"w{n}", profile="be")  # there is something to apply all along
    assert agent.client.get("/healthz") == "ok\n"
    for _ in range(20):
        agent.process.send_signal(last)
    assert agent.process.wait(60) in (0, -last)
    if last == signal.SIGINT:
        assert theirs.texts() == before
        assert not (agent.run_dir / "agent.sock").exists()
    else:
        assert theirs.texts() == adopted
        agent.start()
        assert agent.client.post("/v1/revert", {})["left"] == []
        assert theirs.texts() == before


def test_a_hangup_while_it_starts_does_not_end_it(agent: AgentProcess) -> None:
    stop = threading.Event()

    def shower() -> None:
        while not stop.is_set():
            if agent.process is not None and agent.process.poll() is None and ready_for_signals(agent.process.pid):
                agent.process.send_signal(signal.SIGHUP)
            stop.wait(0.005)

    thread = threading.Thread(target=shower)
    thread.start()
    try:
        agent.start()
    finally:
        stop.set()
        thread.join()
    assert agent.client.get("/healthz") == "ok\n"


def ready_for_signals(pid: int) -> bool:
    """From its first line of Python on: before that there is nobody to decide."""
    with suppress(OSError):
        ignored = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("SigIgn"))
        caught = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("SigCgt"))
        return bool((int(ignored.split()[1], 16) | int(caught.split()[1], 16)) & 1)
    return False


def test_killed_in_the_middle_of_a_handover_the_next_one_takes_over(agent: AgentProcess) -> None:
    placed = agent.start("--until-idle").place("web", profile="ls", minimum={"cpu": "100m"})
    agent.stop(signal.SIGKILL)
    assert agent.process is not None
    agent.start("--takeover")
    assert [w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]] == ["web"]
    assert eventually(lambda: str(agent.kids[0].pid) in (cgroup("cpu", placed["cgroup"]) / "cgroup.procs").read_text())
