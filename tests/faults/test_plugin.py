"""A plugin that raises, hangs, dies or lies, installed for real, beside a real agent: the others never notice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agent.process import AgentProcess, cgroup, eventually, ticks

pytestmark = pytest.mark.host

MODULE = """
import os, time
from j10ce.model.knob import Setting, group
from j10ce.model.plan import Bound, Proposal, Rank

def wish(setting, value):
    return Proposal(setting, Bound.WANT, value, "theirs", Rank.SAFETY, "because")

class Raises:
    name = "raises"
    def propose(self, snap):
        yield from (wish(Setting(t, "cpu.max"), 20000.0) for t in snap.workloads)
        raise ValueError("no idea")

class Hangs:
    name = "hangs"
    def propose(self, snap):
        time.sleep(3600)

class Dies:
    name = "dies"
    def propose(self, snap):
        os.kill(os.getpid(), 9)

class Exits:
    name = "exits"
    def propose(self, snap):
        raise SystemExit(0)

class Garbles:
    name = "garbles"
    def propose(self, snap):
        for fd in range(3, 64):
            try:
                os.write(fd, bytes(64))
            except OSError:
                pass
        return []

class Mistypes:
    name = "mistypes"
    def propose(self, snap):
        return [wish(Setting(t, "cpu.max"), {"a": object}) for t in snap.workloads] or [7]

class Overreaches:
    name = "overreaches"
    def propose(self, snap):
        for target in (group(""), group("init.scope"), group(FOREIGN), group(FOREIGN + "/.."), "workload/no/body"):
            yield wish(Setting(target, "cpu.weight"), 3.0)
            yield wish(Setting(target, "memory.max"), 4096.0)
        for target in snap.workloads:
            for knob, value in (("no.such.knob", 1.0), ("cpu.max", float("nan")), ("cpu.max", -5.0),
                                ("cpu.weight", 1e300), ("cpuset.cpus", frozenset({9999})), ("memory.max", 0.0)):
                yield wish(Setting(target, knob), value)
"""
NAMES = ("raises", "hangs", "dies", "exits", "garbles", "mistypes", "overreaches")


def install(agent: AgentProcess, folder: Path, foreign: str, *names: str) -> None:
    info = folder / "hostile-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n")
    points = "".join(f"{name} = hostile:{name.title()}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[j10ce.controllers]\n{points}")
    (folder / "hostile.py").write_text(f"FOREIGN = {foreign!r}\n{MODULE}")
    agent.environ["PYTHONPATH"] += f":{folder}"


def foreign_values(beside: Path) -> dict[str, str]:
    """Of the roots and of a cgroup that nobody gave to us."""
    folders = {cgroup(c, "") for c in ("cpu", "memory", "cpuset")} | {beside}
    names = ("cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes", "cpuset.cpus", "cpu.weight", "memory.max")
    return {str(f): f.read_text() for folder in folders for n in names if (f := folder / n).exists()}


def helpers(agent: AgentProcess) -> list[int]:
    assert agent.process is not None
    children = Path(f"/proc/{agent.process.pid}/task").glob("*/children")
    return [int(pid) for f in children for pid in f.read_text().split()]


def settings(path: str) -> dict[str, str]:
    names = ("cpu.shares", "cpu.cfs_quota_us", "cpu.idle", "cpu.weight", "cpu.max")
    return {n: f.read_text() for n in names if (f := cgroup("cpu", path) / n).exists()}


@pytest.mark.parametrize("name", NAMES)
def test_one_that_fails_changes_nothing_of_the_others(agent: AgentProcess, tmp_path: Path, name: str) -> None:
    beside = cgroup("cpu", f"{agent.top}-theirs")
    beside.mkdir()
    try:
        install(agent, tmp_path / "site", beside.name, name)
        outside = foreign_values(beside)
        placed = agent.start().place("web", profile="ls", minimum={"cpu": "500m"})
        alone = settings(placed["cgroup"])
        if name != "overreaches":  # what it may ask for, it gets; what nobody may, is refused one by one
            assert eventually(lambda: name in agent.client.get("/v1/status")["faults"])
            assert settings(placed["cgroup"]) == alone
        runs = ticks(agent)
        assert eventually(lambda: ticks(agent) > runs + 3)
        assert agent.client.get("/v1/workloads")["items"][0]["status"]["floor"]["cpu"] == "500m"
        assert foreign_values(beside) == outside
        assert agent.client.get("/healthz") == "ok\n"
    finally:
        agent.clean()
        beside.rmdir()


def test_a_hanging_plugin_does_not_outlive_a_killed_agent(agent: AgentProcess, tmp_path: Path) -> None:
    install(agent, tmp_path / "site", "x", "hangs")
    agent.start()
    assert eventually(lambda: bool(helpers(agent)))
    (helper,) = helpers(agent)
    agent.stop(signal.SIGKILL)
    assert eventually(lambda: not os.path.exists(f"/proc/{helper}") or "Z" in state(helper))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
