"""A user of the same machine takes a process of theirs out of what somebody else placed it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.process import AgentProcess, one_agent
from tests.security.local.local_user import nobody_asks, nobody_s, opened


@pytest.fixture
def agent(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    with one_agent(tmp_path, clone) as one:
        yield opened(one).start()


@pytest.mark.host
@pytest.mark.parametrize("path", ["/v1/workloads", "/v1/adopt"], ids=["placed", "adopted"])
def test_a_user_s_process_keeps_the_limits_that_root_placed_it_under(agent: AgentProcess, path: str) -> None:
    pid = nobody_s(agent).pid
    agent.client.post("/v1/workloads", {"name": "job", "pid": pid, "profile": "be", "limits": {"cpu": "100m"}})
    before = Path(f"/proc/{pid}/cgroup").read_text()

    code, answer = nobody_asks(agent, "POST", path, {"name": "free", "pid": pid})
    said = f"process {pid} is in default/job, placed by uid 0: it stays until default/job is forgotten"
    assert (code, answer["message"]) == (403, said)
    assert Path(f"/proc/{pid}/cgroup").read_text() == before

    agent.client.delete("/v1/workloads/default/job")
    assert nobody_asks(agent, "POST", path, {"name": "free", "pid": pid})[0] == 200


@pytest.mark.host
def test_a_user_moves_a_process_from_one_workload_of_theirs_to_another(agent: AgentProcess) -> None:
    pid = nobody_s(agent).pid
    for name in ("first", "second"):
        assert nobody_asks(agent, "POST", "/v1/workloads", {"name": name, "pid": pid})[0] == 200
    assert "default_second" in Path(f"/proc/{pid}/cgroup").read_text()
