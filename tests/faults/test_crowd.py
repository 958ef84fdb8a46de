"""A thousand workloads at once on a thousand descriptors: all are placed, sampled and given up again."""

from __future__ import annotations

import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.agent.process import AgentProcess, cgroup, eventually, ticks

COUNT = 1000
FEW = 1024


@pytest.fixture
def few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every process that is started from here on, not for this one: a limit that was lowered stays."""
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nulimit -n {FEW}\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))


@pytest.mark.host
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.slow
def test_a_thousand_arrivals_at_once_fit_in_a_thousand_descriptors(agent: AgentProcess) -> None:
    agent.start()
    assert agent.process is not None
    assert resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE) == (FEW, FEW)
    pids = [agent.child() for _ in range(COUNT)]

    def one(n: int) -> str:
        answer = agent.client.post("/v1/workloads", {"name": f"w{n}", "profile": ("ls", "be")[n % 2], "pid": pids[n]})
        return str(answer["cgroup"])

    with ThreadPoolExecutor(50) as crowd:
        placed = list(crowd.map(one, range(COUNT)))
    inside = [(cgroup("cpu", path) / "cgroup.procs").read_text().split() for path in placed]
    assert inside == [[str(pid)] for pid in pids]
    runs = ticks(agent)
    assert eventually(lambda: ticks(agent) >= runs + 3, 60)  # each samples every one of them
    assert len(os.listdir(f"/proc/{agent.process.pid}/fd")) < FEW
    status = agent.client.get("/v1/status")
    assert (status["workloads"], status["faults"], status["refused"]) == (COUNT, {}, [])
    for kid in agent.kids:
        kid.kill()
    assert eventually(lambda: agent.client.get("/v1/status")["workloads"] == 0, 120)
    assert eventually(lambda: not any(cgroup("cpu", path).exists() for path in placed), 60)
