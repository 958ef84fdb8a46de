"""A real agent process on a systemd host, from the first placement to the last value given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.process import AgentProcess, eventually
from tests.systemd.units import cgroup_files, systemctl

MIB = 1 << 20
SCOPE = "j10ce.slice/j10ce-sensitive.slice/j10ce-default-web.scope"
ABOVE = ("j10ce.slice", "j10ce.slice/j10ce-sensitive.slice")
FILES = ("cpu.weight", "cpu.idle", "cpu.max", "memory.min", "memory.low", "memory.oom.group")


@pytest.fixture
def agent(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    one = AgentProcess(tmp_path, "j10ce", clone)
    yield one
    one.clean()
    print(one.log.read_text()[-4000:])


@pytest.fixture
def service() -> Iterator[str]:
    file = Path("/run/systemd/system/db.service")
    file.write_text("[Service]\nExecStart=/bin/sleep 600\nCPUWeight=300\n")
    systemctl("daemon-reload")
    systemctl("start", "db.service")
    yield "db.service"
    systemctl("stop", "db.service")
    file.unlink()


def held(*paths: str) -> dict[str, dict[str, str]]:
    return {path: cgroup_files(path, *FILES) for path in paths}


def protected(path: str) -> int:
    files = cgroup_files(path, "memory.min", "memory.low")
    return max(map(int, files.values()), default=0)


def test_a_command_is_protected_through_a_reload_and_a_restart(agent: AgentProcess) -> None:
    placed = agent.start().place("web", profile="ls", minimum={"cpu": "500m", "memory": "64Mi"})
    assert placed["cgroup"] == SCOPE
    assert Path(f"/proc/{agent.kids[0].pid}/cgroup").read_text() == f"0::/{SCOPE}\n"
    assert all(protected(path) >= 64 * MIB for path in (SCOPE, *ABOVE)), held(SCOPE, *ABOVE)
    before = held(SCOPE, *ABOVE)
    systemctl("daemon-reload")
    assert eventually(lambda: held(SCOPE, *ABOVE) == before), (before, held(SCOPE, *ABOVE))
    assert agent.stop() == 0
    assert held(SCOPE, *ABOVE) == before, "SIGTERM keeps every setting"
    agent.start()
    assert [w["metadata"]["name"] for w in agent.client.get("/v1/workloads")["items"]] == ["web"]
    agent.client.post("/v1/revert", {})
    assert protected(SCOPE) == protected("j10ce.slice") == 0
    agent.kids[0].kill()
    agent.kids[0].wait()
    assert eventually(lambda: not Path("/sys/fs/cgroup", SCOPE).exists())


def test_an_adopted_service_is_given_back(agent: AgentProcess, service: str) -> None:
    before = held(f"system.slice/{service}")
    agent.start().client.post(
        "/v1/adopt", {"unit": service, "name": "db", "profile": "ls", "minimum": {"memory": "32Mi"}}
    )
    assert protected(f"system.slice/{service}") >= 32 * MIB
    agent.client.post("/v1/revert", {})
    after = held(f"system.slice/{service}")[f"system.slice/{service}"]
    assert after.items() <= before[f"system.slice/{service}"].items()
    assert not list(Path("/run/systemd/system.control").glob("db.service.d/*"))
    assert systemctl("show", "-P", "CPUWeight", service).strip() == "300"
