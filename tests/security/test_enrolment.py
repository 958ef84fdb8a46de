"""A node comes by its token with a bootstrap token, renews it by itself, and nobody else becomes that node."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from j10ce.agent.bootstrap import Enrolment
from j10ce.agent.client import Peer
from tests.security.plane import BASE, ENV, Manager, command

PATH = f"{BASE}/nodecredentials"


def enrol(client: httpx.Client, node: str) -> httpx.Response:
    return client.post(PATH, json={"node": node})


@pytest.fixture
def manager(shared: Manager) -> Manager:
    """One for all tests: each has a node of its own."""
    return shared


@pytest.fixture
def node(request: pytest.FixtureRequest) -> str:
    return f"n{hashlib.sha256(request.node.name.encode()).hexdigest()[:8]}"


def test_a_token_is_told_once_and_speaks_for_its_node_alone(manager: Manager, node: str) -> None:
    with manager.client("bootstrap") as client:
        answer = enrol(client, node)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    with manager.client(answer.json()["token"]) as itself:
        codes = [itself.get(f"{BASE}/nodedocuments/{n}").status_code for n in (node, "n8")]
        assert codes == [200, 403]
        shown = itself.get(f"{PATH}/{node}").json()
    assert shown == {k: v for k, v in answer.json().items() if k != "token"}


def test_a_node_that_is_there_cannot_be_taken_over(manager: Manager, node: str) -> None:
    with manager.client("bootstrap") as client, manager.client("admin") as admin:
        first = enrol(client, node).json()["token"]
        again = enrol(client, node)
        assert (again.status_code, again.json()["reason"]) == (409, "Conflict")
        assert f"j10ce-qos token revoke node.{node}" in again.json()["message"]
        assert enrol(client, "n1").status_code == 409, "a node of the auth file is there, too"
        assert admin.delete(f"{BASE}/credentials/node.{node}").status_code == 200
        while (again := enrol(client, node)).status_code == 409:
            pass
    assert again.status_code == 201
    with manager.client(first) as old, manager.client(again.json()["token"]) as fresh:
        assert [c.get(f"{PATH}/{node}").status_code for c in (old, fresh)] == [401, 200]


def test_a_bootstrap_token_is_used_up(manager: Manager) -> None:
    token = manager.admin("token", "create", "rack7", "--role", "bootstrap", "--uses", "2")
    with manager.client(token) as client:
        codes = [enrol(client, f"m{n}").status_code for n in range(2)]
        assert codes == [201, 201]
        while enrol(client, "m9").status_code != 401:
            pass
    assert "rack7" in manager.admin("token", "list")


async def test_a_rack_that_boots_at_once_is_enrolled_as_far_as_its_token_reaches(manager: Manager) -> None:
    token = manager.admin("token", "create", "rack9", "--role", "bootstrap", "--uses", "20")
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=manager.server, headers=headers, verify=manager.plane.trust(), timeout=60
    ) as client:
        while (await client.post(PATH, json={})).status_code == 401:
            pass
        answers = await asyncio.gather(*(client.post(PATH, json={"node": f"rack9-{n}"}) for n in range(25)))
    codes = [a.status_code for a in answers]
    assert codes.count(201) == 20
    assert set(codes) <= {201, 401, 403}


def test_there_is_no_rehearsal(shared: Manager) -> None:
    with shared.client("bootstrap") as client:
        assert client.post(PATH, json={"node": "n9"}, params={"dryRun": "All"}).status_code == 400
        assert client.post(PATH, json={"node": "n9"}).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "node", id="nothing"),
        pytest.param({"node": "Not A Name"}, "node", id="no name"),
        pytest.param({"node": "n" * 250}, "node", id="too long"),
        pytest.param({"node": "n7", "lifetime": "1s"}, "lifetime", id="too short a life"),
        pytest.param({"node": "n7", "lifetime": "31d"}, "lifetime", id="too long a life"),
        pytest.param({"node": "n7", "role": "admin"}, "role", id="another role"),
    ],
)
def test_a_wrong_wish_is_told(shared: Manager, body: dict[str, str], field: str) -> None:
    with shared.client("bootstrap") as client:
        answer = client.post(PATH, json=body)
    assert answer.status_code == 422
    assert [cause["field"] for cause in answer.json()["details"]["causes"]] == [field]


def test_a_lost_answer_does_not_lock_a_node_out(manager: Manager, node: str) -> None:
    with manager.client("bootstrap") as client:
        token = enrol(client, node).json()["token"]
    with manager.client(token) as itself:
        assert enrol(itself, node).status_code == 201, "the answer of this one is lost"
        assert enrol(itself, node).status_code == 201, "and so is that of this one"
        fresh = enrol(itself, node)
    with manager.client(fresh.json()["token"]) as renewed:
        assert renewed.get(f"{PATH}/{node}").status_code == 200


def test_a_token_of_the_auth_file_is_not_renewed_over_the_api(shared: Manager) -> None:
    with shared.client("node") as itself:
        answer = enrol(itself, "n1")
    assert answer.status_code == 403
    assert "where it comes from" in answer.json()["message"]


class Calendar:
    """A wall clock that can be moved."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def test_an_agent_renews_its_token_long_before_it_ends(manager: Manager, node: str, tmp_path: Path) -> None:
    bootstrap, file = tmp_path / "bootstrap", tmp_path / "deep/token"
    calendar = Calendar(time.clock_gettime(time.CLOCK_REALTIME) + 59)  # it will find its token a second from its end
    bootstrap.write_text(manager.plane.tokens["bootstrap"])
    peer = Peer(manager.server, str(file), str(manager.plane.pki / "ca.crt"))
    with manager.client("admin") as admin:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            running = group.create_task(Enrolment(peer, node, str(bootstrap), calendar, lifetime="60s").run())
            first = await written(file)
            assert admin.get(f"{PATH}/{node}").json()["expires"]
            calendar.now += 60
            second = await written(file, first)
            running.cancel()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first != second
    with manager.client(second) as itself:
        assert itself.get(f"{PATH}/{node}").status_code == 200


async def written(file: Path, other_than: str = "") -> str:
    while True:
        await asyncio.sleep(0.01)
        if file.exists() and (text := file.read_text().strip()) != other_than:
            return text


@contextmanager
def agent(manager: Manager, node: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real one that writes nothing to the machine."""
    env = {
        **ENV,
        "J10CE_RUN_DIR": f"{folder}/run",
        "J10CE_STATE_DIR": f"{folder}/state",
        "J10CE_CONFIG_DIR": "/nowhere",
    }
    argv = ["--server", manager.server, "--ca-file", f"{manager.plane.pki}/ca.crt", "--node-name", node, "--unarmed"]
    for name in ("run", "state"):
        (folder / name).mkdir(exist_ok=True)
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "j10ce.agent.main", *argv, *more], env=env, stderr=log, stdout=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_agent_enrols_reports_and_comes_back_with_its_token(manager: Manager, node: str, tmp_path: Path) -> None:
    bootstrap, file = tmp_path / "bootstrap", tmp_path / "state/token"
    bootstrap.write_text(manager.admin("token", "create", "rack8", "--role", "bootstrap"))
    with manager.client("admin") as admin:
        with agent(manager, node, tmp_path, "--bootstrap-token-file", str(bootstrap)):
            first = beat(admin, node, "")
        token = file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        os.remove(bootstrap)
        with agent(manager, node, tmp_path, "--token-file", str(file)):
            beat(admin, node, first)
        assert file.read_text() == token
        assert admin.get(f"{BASE}/credentials/rack8").json()["spec"]["uses"] == 0
    log = (tmp_path / "agent.log").read_text()
    assert token.strip().rpartition(".")[2] not in log
    assert "enrolment.done" in log


def beat(admin: httpx.Client, node: str, after: str) -> str:
    """The next heartbeat of the node."""
    while True:
        answer = admin.get(f"{BASE}/nodeqoses/{node}")
        told = answer.json()["status"].get("node", {}).get("heartbeat", "") if answer.status_code == 200 else ""
        if told > after:
            return str(told)


def test_the_cli_makes_tokens_that_work_and_die(manager: Manager) -> None:
    token = manager.admin("token", "create", "carol", "--role", "viewer", "--for", "1h")
    with manager.client(token) as client:
        while client.get(f"{BASE}/qosprofiles").status_code != 200:
            pass
        manager.admin("token", "revoke", "carol")
        while client.get(f"{BASE}/qosprofiles").status_code != 401:
            pass


def test_the_auth_file_is_followed(manager: Manager) -> None:
    plane = manager.plane
    token = plane.create("viewer", "dave")
    manager.hang_up()
    with manager.client(token) as client:
        while client.get(f"{BASE}/qosprofiles").status_code != 200:
            pass
        command("token", "revoke", "dave", "--auth", str(plane.auth))
        while client.get(f"{BASE}/qosprofiles").status_code != 401:
            pass  # without a signal, too
