"""A node comes by its token with a bootstrap token, renews it by itself, and nobody else becomes that node."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from j10ce.agent.sync.enrolment import Enrolment
from j10ce.errors import Conflict, Unreachable
from j10ce.http.client import Peer
from j10ce.manager.access.enrolment import Enrolment as Tokens
from j10ce.manager.access.enrolment import NodeCredentialRequest
from j10ce.manager.access.tokens import Keyring, make
from j10ce.manager.identity import Act, Caller, Role, acting, caller_of
from j10ce.model.kinds import Condition, Credential, CredentialSpec, Meta, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.store.memory import MemoryStore
from j10ce.store.store import ABSENT
from j10ce.testing.build import WALL
from tests.security.plane import BASE, ENV, Manager, Plane, command, obj

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


def test_a_token_is_shown_once_and_speaks_for_its_node_alone(manager: Manager, node: str) -> None:
    with manager.client("bootstrap") as client:
        answer = enrol(client, node)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    with manager.client(answer.json()["token"]) as itself:
        codes = [itself.get(f"{BASE}/nodedocuments/{n}").status_code for n in (node, "n8")]
        assert codes == [200, 403]
        shown = itself.get(f"{PATH}/{node}").json()
    assert shown == {k: v for k, v in answer.json().items() if k != "token"}


def test_of_a_name_that_no_node_can_have_nothing_is_reported(manager: Manager) -> None:
    with manager.client("admin") as admin:
        answer = admin.get(f"{PATH}/%C3%97")
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")


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


def test_of_many_who_enrol_one_node_at_once_one_becomes_it(manager: Manager, node: str) -> None:
    """All requests are sent before the first answer is read."""
    token = manager.admin("token", "create", f"r{node}", "--role", "bootstrap", "--uses", "100")
    lines = [
        f"POST {PATH} HTTP/1.1",
        f"Host: 127.0.0.1:{manager.port}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(json.dumps({'node': node}))}",
    ]
    request = ("\r\n".join(lines) + "\r\n\r\n" + json.dumps({"node": node})).encode()
    with ExitStack() as stack:
        wires = [
            stack.enter_context(
                manager.plane.trust().wrap_socket(
                    stack.enter_context(socket.create_connection(("127.0.0.1", manager.port))),
                    server_hostname="localhost",
                )
            )
            for _ in range(12)
        ]
        for wire in wires:
            wire.sendall(request)
        codes = sorted(int(wire.recv(4096).split()[1]) for wire in wires)
    assert codes == [201] + [409] * 11


def test_an_administrator_rotates_what_a_node_has(manager: Manager, node: str) -> None:
    with manager.client("bootstrap") as client, manager.client("admin") as admin:
        first = enrol(client, node).json()["token"]
        again = enrol(admin, node)
        assert again.status_code == 201
    with manager.client(first) as old, manager.client(again.json()["token"]) as fresh:
        assert [c.get(f"{PATH}/{node}").status_code for c in (old, fresh)] == [401, 200]


async def test_a_manager_that_still_reads_enrols_nobody() -> None:
    keyring = Keyring(MemoryStore(lambda: WALL), lambda: WALL)
    act = Act()
    act.recognised(Caller("bootstrap.rack", Role.BOOTSTRAP), "rack", b"x")
    with acting(act), pytest.raises(Unreachable, match="still being read"):
        await Tokens(keyring).issue(NodeCredentialRequest(node="n7"))


async def test_a_node_that_another_manager_has_enrolled_meanwhile_is_not_taken_over() -> None:
    """This manager's own picture lags: its keyring is in sync and has not heard of the other's write yet."""
    store = MemoryStore(lambda: WALL)
    keyring = Keyring(store, lambda: WALL)
    keyring.synced.set()
    spec = CredentialSpec(role="node", node="n7", hash=make("node.n7")[1])
    await store.put(Credential(metadata=Meta(name="node.n7"), spec=spec), expect=ABSENT)
    act = Act()
    act.recognised(Caller("bootstrap.rack", Role.BOOTSTRAP), "rack", b"x")
    with acting(act), pytest.raises(Conflict, match="n7 has the credential"):
        await Tokens(keyring).issue(NodeCredentialRequest(node="n7"))


def test_a_node_whose_host_is_called_like_a_person_does_not_become_that_person(plane: Plane) -> None:
    command("certs", "client", "alice", "--role", "node", "--dir", str(plane.pki))
    trust = plane.trust()
    trust.load_cert_chain(plane.pki / "alice.crt", plane.pki / "alice.key")
    with plane.manager("--client-ca", str(plane.pki / "ca.crt")) as manager:
        token = manager.admin("token", "create", "alice", "--role", "admin")
        with httpx.Client(base_url=manager.server, verify=trust) as host, manager.client(token) as alice:
            assert host.get(f"{BASE}/credentials").status_code == 403
            answer = enrol(host, "alice")
            assert answer.status_code == 403
            assert "no Credential object" in answer.json()["message"]
            reply = alice.get(f"{BASE}/credentials/alice")
    assert reply.status_code == 200
    assert reply.json()["spec"].get("formerHash", "") == ""


def test_a_bootstrap_token_does_not_become_a_node_that_reports_by_certificate(plane: Plane) -> None:
    command("certs", "client", "carol", "--role", "node", "--dir", str(plane.pki))
    trust = plane.trust()
    trust.load_cert_chain(plane.pki / "carol.crt", plane.pki / "carol.key")
    made, heard = {"metadata": {"name": "carol"}}, {"heartbeat": "2026-11-17T04:00:00Z", "bootId": "the-real-one"}
    with (
        plane.manager("--client-ca", str(plane.pki / "ca.crt")) as manager,
        httpx.Client(base_url=manager.server, verify=trust) as carol,
        manager.client("bootstrap") as thief,
        manager.client("admin") as admin,
    ):
        head = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS"}
        assert carol.post(f"{BASE}/nodeqoses", json={**head, **made}).status_code == 201
        merge = {"content-type": "application/merge-patch+json"}
        reply = carol.patch(f"{BASE}/nodeqoses/carol/status", json={"status": {"node": heard}}, headers=merge)
        assert reply.status_code == 200
        answer = enrol(thief, "carol")
        assert (answer.status_code, "it has a certificate" in answer.json()["message"]) == (409, True)
        assert enrol(admin, "carol").status_code == 201, "an administrator may"


@pytest.mark.parametrize("had", [False, True], ids=["never had one", "had one that expired"])
@pytest.mark.parametrize(("ready", "enrolled"), [("Unknown", True), ("True", False), ("False", False)])
async def test_a_node_without_a_credential_is_enrolled_once_it_is_silent(ready: Any, enrolled: bool, had: bool) -> None:
    store = MemoryStore(lambda: WALL)
    keyring = Keyring(store, lambda: WALL)
    keyring.synced.set()
    if had:
        past = CredentialSpec(role="node", node="n7", hash=make("x")[1], expires=datetime.fromtimestamp(WALL - 1, UTC))
        await store.put(Credential(metadata=Meta(name="node.n7"), spec=past), expect=ABSENT)
    judged = NodeQoSStatus(
        node=NodeReport(heartbeat=datetime.fromtimestamp(WALL, UTC)),
        conditions=(Condition(type="Ready", status=ready),),
    )
    for part in ("spec", "status"):
        await store.put(NodeQoS(metadata=Meta(name="n7"), status=judged), part=part)  # type: ignore[arg-type]
    act = Act()
    act.recognised(Caller("bootstrap.rack", Role.BOOTSTRAP), "rack", b"x")
    with acting(act), nullcontext() if enrolled else pytest.raises(Conflict, match="enrol it once it is silent"):
        await Tokens(keyring).issue(NodeCredentialRequest(node="n7"))


@pytest.mark.parametrize("role", ["viewer", "admin", "bootstrap"])
def test_a_person_cannot_have_the_name_of_a_node(shared: Manager, role: str) -> None:
    spec = {"role": role, "hash": make("x")[1]}
    spec |= {"uses": 1, "expires": "2099-01-01T00:00:00Z"} if role == "bootstrap" else {}
    with shared.client("admin") as admin:
        answer = admin.post(f"{BASE}/credentials", json=obj("Credential", "node.web7", **spec))
    assert answer.status_code == 422
    assert [cause["field"] for cause in answer.json()["details"]["causes"]] == ["metadata.name"]


@pytest.mark.parametrize("name", ["system", "owner"])
def test_a_person_cannot_have_a_name_that_the_manager_has_in_the_audit_log(shared: Manager, name: str) -> None:
    with shared.client("admin") as admin:
        answer = admin.post(f"{BASE}/credentials", json=obj("Credential", name, role="editor", hash=make("x")[1]))
    assert (answer.status_code, "give it another" in answer.text) == (422, True)
    assert caller_of(name, Role.EDITOR) is None


def test_nobody_is_mistaken_for_another_kind_of_caller() -> None:
    kinds = [(Role.NODE, "alice"), (Role.BOOTSTRAP, ""), (Role.ADMIN, ""), (Role.VIEWER, "")]
    for name in ("alice", "node.alice", "bootstrap.alice"):
        callers = [c for role, node in kinds if (c := caller_of(name, role, node)) is not None]
        for one, other in combinations(callers, 2):
            people = Role.NODE not in (one.role, other.role) and Role.BOOTSTRAP not in (one.role, other.role)
            assert people or one.name != other.name


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
def test_a_wrong_wish_is_reported(shared: Manager, body: dict[str, str], field: str) -> None:
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
        reply = answer.json()["status"].get("node", {}).get("heartbeat", "") if answer.status_code == 200 else ""
        if reply > after:
            return str(reply)


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
