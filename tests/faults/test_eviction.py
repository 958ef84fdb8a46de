"""Killed between freeze and thaw, or in the middle of an eviction: nobody stands still for ever, or is asked twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.host.mounts import Hierarchies
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.process import AgentProcess, cgroup, eventually

pytestmark = pytest.mark.host
NODE = "n1"
SPIN = "while :; do :; done"
ANY = 1e-6  # pressure: with as many spinners as this some task always waits
CPU = {"cpu": {"thresholdPercent": 1, "lowerPercent": 0, "window": "2s"}}


def instruct(agent: AgentProcess, said: dict[str, Any] | None, **law: Any) -> None:
    """What the node's strategy says, as a control plane would have left it there; None: nothing."""
    agent.run_dir.mkdir(parents=True, exist_ok=True)
    agent.config_dir.mkdir(parents=True, exist_ok=True)
    config = {"controllers": {"eviction": {"pressure": ANY, "relief": ANY, "throttle": "1s", "settle": "1s", **law}}}
    (agent.config_dir / "agent.yaml").write_text(yaml.safe_dump(config))
    strategies = (build.strategy("evict", {"eviction": said}),) if said else ()
    document = NodeDocument(node=NODE, format=FORMAT, profiles=builtin(), strategies=strategies)
    Cache(agent.run_dir, agent.state_dir).keep_document(replace(document, hash=digest(document)))


@contextmanager
def hog(agent: AgentProcess, script: str = SPIN) -> Iterator[subprocess.Popen[bytes]]:
    """Best effort, with four processes that want a CPU each; they begin once they are in."""
    command = ["/bin/sh", "-c", f"read go; ({SPIN}) & ({SPIN}) & ({SPIN}) & {script}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    try:
        agent.client.post("/v1/workloads", {"name": "hog", "pid": process.pid, "profile": "be"})
        process.stdin.write(b"go\n")
        process.stdin.flush()
        yield process
    finally:
        with suppress(OSError):  # a test that failed: on v1 a frozen process does not even die
            freezer(agent).write_text("THAWED" if freezer(agent).name == "freezer.state" else "0")
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
        process.wait()


def freezer(agent: AgentProcess) -> Path:
    path = f"{agent.top}_besteffort/default_hog"
    if Hierarchies.discover().version("freezer") == 1:
        return cgroup("freezer", path) / "freezer.state"
    return cgroup("unified", path) / "cgroup.freeze"


def frozen(agent: AgentProcess) -> bool:
    return freezer(agent).read_text() not in ("THAWED\n", "0\n")


def test_a_kill_between_freeze_and_thaw_leaves_nobody_frozen_once_an_agent_is_back(agent: AgentProcess) -> None:
    instruct(agent, CPU, freeze="1h", critical="1h")
    agent.start("--node-name", NODE)
    with hog(agent):
        assert eventually(lambda: frozen(agent), 60.0), agent.client.get("/v1/explain", target="node")["text"]
        assert eventually(lambda: "frozen" in {w["state"] for w in agent.client.get("/v1/top")["workloads"]})
        assert "stands still" in explained(agent, "workload/default/hog", knob="cgroup.freeze")
        assert "number 1 of 1" in explained(agent, "workload/default/hog", knob="evict")
        assert "eviction by cpu: freeze" in explained(agent, "node")
        agent.stop(signal.SIGKILL)
        assert frozen(agent), "nobody was there to thaw it"
        instruct(agent, None)
        agent.start("--node-name", NODE)
        assert eventually(lambda: not frozen(agent))


def test_an_agent_that_may_not_write_or_stops_in_order_leaves_nobody_frozen(agent: AgentProcess) -> None:
    instruct(agent, CPU, freeze="1h", critical="1h")
    agent.start("--node-name", NODE)
    with hog(agent):
        assert eventually(lambda: frozen(agent), 60.0)
        agent.client.post("/v1/disarm", {})
        assert eventually(lambda: not frozen(agent))
        agent.client.post("/v1/arm", {})
        assert eventually(lambda: frozen(agent), 60.0)
        agent.stop(signal.SIGTERM)
        assert not frozen(agent)


def test_a_kill_in_the_middle_of_an_eviction_asks_nobody_twice_and_grace_goes_on(
    agent: AgentProcess, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    instruct(agent, {**CPU, "mode": "enforce"}, freeze="1s", grace="8s")
    agent.start("--node-name", NODE)
    with hog(agent, f"trap 'echo asked >> {asked}' TERM; {SPIN}") as process:
        assert eventually(asked.exists, 60.0), explained(agent, "node")
        agent.stop(signal.SIGKILL)
        agent.start("--node-name", NODE)
        assert eventually(lambda: process.poll() == -signal.SIGKILL, 60.0), explained(agent, "node")
    assert asked.read_text().split() == ["asked"]


def explained(agent: AgentProcess, target: str, **query: str) -> str:
    return str(agent.client.get("/v1/explain", target=target, **query)["text"])
