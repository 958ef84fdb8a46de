"""What is refused, and what is never touched, asked of a real agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.errors import Invalid, QosError
from tests.agent.process import AgentProcess, cgroup, eventually, ticks

pytestmark = pytest.mark.host
MIB = 1 << 20
HOLD = f"input(); held = bytearray(b'x') * {64 * MIB}; print('held', flush=True); input()"
LIMIT = ("memory.limit_in_bytes", "memory.max")
USAGE = ("memory.usage_in_bytes", "memory.current")


def number(folder: Path, names: tuple[str, ...]) -> float:
    text = next(f.read_text().strip() for n in names if (f := folder / n).exists())
    return float("inf") if text == "max" else float(text)


def test_no_memory_limit_goes_below_what_is_in_use(agent: AgentProcess) -> None:
    folder = cgroup("memory", f"{agent.top}-full")
    folder.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        (folder / "cgroup.procs").write_text(str(holder.pid))
        holder.stdin.write("\n")  # only what is taken inside counts
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        agent.start()
        agent.client.post("/v1/adopt", {"cgroup": folder.name, "name": "full", "limits": {"memory": "8Mi"}})
        runs = ticks(agent)
        assert eventually(lambda: ticks(agent) > runs + 3)
        assert number(folder, LIMIT) >= number(folder, USAGE) > 8 * MIB
        assert holder.poll() is None
        text = agent.client.get("/v1/explain", target="workload/default/full", knob="memory.max")["text"]
        assert "use" in text
    finally:
        agent.clean()
        holder.communicate("\n")
        folder.rmdir()


def noted(agent: AgentProcess, name: str, minimum: dict[str, str]) -> str:
    """What is said to a placement, whether it is refused or goes unprotected."""
    try:
        return str(agent.place(name, profile="ls", minimum=minimum)["notes"])
    except QosError as e:
        return str(e)


@pytest.mark.parametrize("minimum", [{"memory": "900Ti"}, {"cpu": "640"}], ids=["memory", "cpu"])
def test_a_promise_beyond_the_machine_is_refused_with_numbers(agent: AgentProcess, minimum: dict[str, str]) -> None:
    agent.start()
    (wanted,) = minimum.values()
    note = noted(agent, "web", minimum)
    assert f"{wanted} wanted" in note
    assert "free" in note


def test_promises_together_never_exceed_the_machine(agent: AgentProcess) -> None:
    """Two fifths of the machine, three times: the third does not fit, and the first two keep theirs."""
    agent.start()
    notes = [noted(agent, f"w{n}", {"memory": "40%"}) for n in range(3)]
    assert ["wanted" in text for text in notes] == [False, False, True]
    floors = [w["status"].get("floor", {}) for w in agent.client.get("/v1/workloads")["items"]]
    assert len([f for f in floors if f.get("memory")]) == 2


def test_the_root_and_strangers_stay_as_they_are(agent: AgentProcess) -> None:
    """Through placing, adopting, holding, an operator's orders, and the end."""
    stranger = cgroup("cpu", f"{agent.top}-stranger")
    stranger.mkdir()
    mine = cgroup("cpu", f"{agent.top}-mine")
    mine.mkdir()
    try:
        (mine / "cgroup.procs").write_text(str(agent.child()))
        before = settings(stranger)
        agent.start().place("web", profile="ls", minimum={"cpu": "200m"}, limits={"cpu": "1", "memory": "1Gi"})
        agent.place("crunch", profile="be")
        agent.client.post("/v1/adopt", {"cgroup": mine.name, "name": "mine", "profile": "be"})
        hold = {"knobs": ["cpu.weight"], "forSeconds": 60, "why": "test", "value": "77"}
        agent.client.post("/v1/holds", {**hold, "target": f"group/{stranger.name}"})
        agent.client.post("/v1/holds", {**hold, "target": "workload/default/crunch"})
        with pytest.raises(Invalid, match="never written"):
            agent.client.post("/v1/holds", {**hold, "target": "group/"})
        runs = ticks(agent)
        assert eventually(lambda: ticks(agent) > runs + 3)
        assert settings(stranger) == before
        agent.client.post("/v1/revert", {"force": True})
        assert settings(stranger) == before
    finally:
        agent.clean()
        stranger.rmdir()
        mine.rmdir()


def settings(stranger: Path) -> dict[str, str]:
    """Of the roots and of a cgroup that nobody gave to us."""
    names = ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.idle", "cpu.weight", "cpu.max", "cpuset.cpus")
    folders = {cgroup(c, "") for c in ("cpu", "cpuset", "memory")} | {stranger}
    more = ("memory.limit_in_bytes", "memory.max", "memory.low")
    return {str(f): f.read_text() for folder in folders for n in (*names, *more) if (f := folder / n).exists()}
