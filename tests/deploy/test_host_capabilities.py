"""The capabilities that deploy/ leaves the agent are all that it needs, on this machine's own cgroups."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent.conftest import agent
from tests.agent.process import AgentProcess, cgroup
from tests.deploy.dockerfiles import CLONE

__all__ = ["agent"]
pytestmark = pytest.mark.host
BITS = {"DAC_OVERRIDE": 1, "SYS_RESOURCE": 24}  # in CapBnd


def test_an_agent_with_the_capabilities_of_its_pod_enforces_and_gives_back(agent: AgentProcess) -> None:
    """As with pods: someone else made the cgroup, and its processes stay where they are."""
    theirs = cgroup("cpu", f"{agent.top}-pod")
    theirs.mkdir()
    try:
        (theirs / "cgroup.procs").write_text(str(agent.child()))
        before = values(theirs)
        agent.inside = ("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={left()}", "--")
        agent.start("--node-name=capable")
        assert agent.process is not None
        assert granted(Path(f"/proc/{agent.process.pid}/status")) <= set(BITS)
        assert "unwritable" not in agent.client.get("/v1/status")
        agent.client.post("/v1/adopt", {"cgroup": theirs.name, "name": "pod", "profile": "be"})
        assert values(theirs) != before
        assert agent.client.post("/v1/revert", {})["left"] == []
        assert values(theirs) == before
    finally:
        agent.clean()
        theirs.rmdir()


@pytest.mark.parametrize("name", ["startupProbe", "livenessProbe"])
def test_a_probe_of_its_pod_tells_a_live_agent_from_a_dead_one(agent: AgentProcess, name: str) -> None:
    *command, address = container()[name]["exec"]["command"]
    assert address == "/run/j10ce-qos/agent.sock"
    probe = [sys.executable, *command[1:], agent.run_dir / "agent.sock"]
    agent.start()
    assert subprocess.run(probe, check=False, timeout=100).returncode == 0
    agent.stop()
    assert subprocess.run(probe, check=False, timeout=100, stderr=subprocess.DEVNULL).returncode == 1


def container() -> Any:
    (body,) = yaml.safe_load((CLONE / "deploy/base/agent.yaml").read_text())["spec"]["template"]["spec"]["containers"]
    return body


def values(folder: Path) -> dict[str, str]:
    names = ("cpu.idle", "cpu.shares", "cpu.weight", "cpu.max", "cpu.cfs_quota_us")
    return {name: (folder / name).read_text() for name in names if (folder / name).exists()}


def left() -> str:
    """As setpriv spells what the manifest says, as far as this machine has it."""
    capabilities = container()["securityContext"]["capabilities"]
    assert capabilities["drop"] == ["ALL"]
    assert set(capabilities["add"]) == set(BITS)
    has = granted(Path("/proc/self/status"))
    return ",".join(["-all", *(f"+{name.lower()}" for name in capabilities["add"] if name in has)])


def granted(status: Path) -> set[str]:
    """Of those that we speak of; others by number."""
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("CapBnd"))
    mask = int(line.split()[1], 16)
    names = {bit: name for name, bit in BITS.items()}
    return {names.get(bit, str(bit)) for bit in range(64) if mask >> bit & 1}
