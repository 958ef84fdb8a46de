"""Every role, every verb, every kind, against a real manager: what is allowed happens, all else is refused.

The table is written out here on purpose: it must not be derived from the one it checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.access.roles import KINDS_ASKED, RIGHTS
from j10ce.manager.identity import Role
from tests.security.plane import BASE, ROLES, Manager, hold, obj

PLURALS = {
    "QoSProfile": "qosprofiles",
    "MinimalReservationPolicy": "namespaces/default/minimalreservationpolicies",
    "NodeQoS": "nodeqoses",
    "Hold": "namespaces/default/holds",
    "PolicyRevision": "namespaces/default/policyrevisions",
    "Credential": "credentials",
}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
READS = {"get", "list", "watch"}
DECLARED = ("QoSProfile", "MinimalReservationPolicy", "Hold")

ALLOWED: dict[str, set[tuple[str, str]]] = {
    "viewer": {(k, v) for k in PLURALS for v in READS if k != "Credential"},
    "node": {("NodeQoS", "get"), ("NodeQoS", "create"), ("Hold", "create"), ("Hold", "delete")},
    "admin": set(itertools.product(PLURALS, VERBS)),
    "bootstrap": set(),
}
ALLOWED["editor"] = (
    ALLOWED["viewer"] | set(itertools.product(DECLARED, VERBS)) | {("NodeQoS", "update"), ("NodeQoS", "patch")}
)
STATUS = {("admin", kind) for kind in PLURALS} | {("node", "NodeQoS")}


def body(kind: str, name: str) -> dict[str, Any]:
    match kind:
        case "QoSProfile":
            return obj(kind, name, tier="standard")
        case "MinimalReservationPolicy":
            return obj(kind, name, minimum={"cpu": "1m"})
        case "Hold":
            return hold(name, node="n1")
        case "Credential":
            return obj(kind, name, role="viewer", hash=f"sha256:{'ab' * 32}")
        case "PolicyRevision":
            made = obj(kind, name)
            del made["spec"]
            return made | {"revision": 1, "data": {}}
        case _:
            made = obj("NodeQoS", name)
            del made["spec"]
            return made


@pytest.fixture(scope="module")
def clients(shared: Manager) -> Iterator[dict[str, httpx.Client]]:
    made = {role: shared.client(role) for role in ROLES}
    yield made
    for client in made.values():
        client.close()


def ask(client: httpx.Client, kind: str, verb: str, name: str, part: str = "") -> httpx.Response:
    where = f"{BASE}/{PLURALS[kind]}"
    one = f"{where}/{name}{part}"
    match verb:
        case "get":
            return client.get(one)
        case "list":
            return client.get(where)
        case "watch":
            return begun(client, where)
        case "create":
            return client.post(where, json=body(kind, name))
        case "update":
            return client.put(one, json=body(kind, name))
        case "patch":
            merge = {"content-type": "application/merge-patch+json"}
            return client.patch(one, json={"metadata": {"labels": {"a": "b"}}}, headers=merge)
        case _:
            return client.delete(one)


def said(answer: httpx.Response) -> str:
    return answer.text if answer.is_closed and answer.status_code >= 400 else ""


def begun(client: httpx.Client, where: str) -> httpx.Response:
    """The answer to a watch, which is left as soon as it has begun."""
    with client.stream("GET", where, params={"watch": "1"}) as answer:
        if answer.status_code >= 400:
            answer.read()
    return answer


def wish(answer: httpx.Response) -> Any:
    """What a client decides of an object; the manager writes its status whenever it likes."""
    reply = answer.json()
    meta = {key: value for key, value in reply["metadata"].items() if key in ("uid", "generation", "labels")}
    return answer.status_code, meta, reply.get("spec")


@pytest.mark.parametrize("kind", PLURALS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_the_table_says_and_nothing_else(
    clients: dict[str, httpx.Client], role: str, kind: str
) -> None:
    admin, client, name = clients["admin"], clients[role], "n1" if kind == "NodeQoS" else f"of-{role}"
    for verb in VERBS:
        ask(admin, kind, "delete" if verb == "create" else "create", name)
        before = ask(admin, kind, "get", name)
        answer = ask(client, kind, verb, name)
        allowed = (kind, verb) in ALLOWED[role]
        assert (answer.status_code < 400) == allowed, f"{role} {verb} {kind}: {answer.status_code} {said(answer)}"
        if not allowed:
            assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
            assert f"{role}" in answer.json()["message"]
            assert wish(ask(admin, kind, "get", name)) == wish(before), "a refusal changes nothing"


@pytest.mark.parametrize("kind", [kind for kind in PLURALS if kind != "PolicyRevision"])
@pytest.mark.parametrize("role", ROLES)
def test_status_is_written_by_admins_and_by_the_node_itself(
    clients: dict[str, httpx.Client], role: str, kind: str
) -> None:
    name = "n1" if kind == "NodeQoS" else f"status-{role}"
    ask(clients["admin"], kind, "create", name)
    for verb in ("update", "patch"):
        answer = ask(clients[role], kind, verb, name, "/status")
        assert (answer.status_code < 400) == ((role, kind) in STATUS), f"{role} {verb} {kind}/status: {answer.text}"


OWN = {"node": ["/nodedocuments/n1", "/nodecredentials/n1"]}
READING = ("viewer", "editor", "admin")
OTHERS = [
    ("/apis", (*READING, "node")),
    (BASE, (*READING, "node")),
    ("/openapi.json", (*READING, "node")),
    ("/metrics", READING),
    (f"{BASE}/nodedocuments/n1", (*READING, "node")),
    (f"{BASE}/nodedocuments/n2", READING),
    (f"{BASE}/nodecredentials/n1", ("admin", "node")),
    (f"{BASE}/nodecredentials/n2", ("admin",)),
    (f"{BASE}/nothings", ()),
]


@pytest.mark.parametrize(("path", "roles"), OTHERS)
def test_what_is_no_object_has_its_readers_too(
    clients: dict[str, httpx.Client], path: str, roles: tuple[str, ...]
) -> None:
    assert {role for role in ROLES if clients[role].get(path).status_code < 400} == set(roles)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version"])
def test_health_is_for_everyone(shared: Manager, path: str) -> None:
    with shared.client() as anyone:
        assert anyone.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/metrics", "/apis", "/openapi.json", BASE, f"{BASE}/qosprofiles", "/", "/nothing"])
def test_nothing_else_is(shared: Manager, path: str) -> None:
    with shared.client() as anyone:
        assert anyone.get(path).status_code == 401


REACH = [
    pytest.param("PUT", "nodeqoses/n2/status", obj("NodeQoS", "n2"), id="report for another node"),
    pytest.param("POST", "nodeqoses", obj("NodeQoS", "n2"), id="create another node"),
    pytest.param("POST", "nodeqoses", obj("NodeQoS", "n1", labels={"zone": "gold"}), id="label itself"),
    pytest.param("POST", "nodeqoses", obj("NodeQoS", "n1", disarmed=True), id="write its own spec"),
    pytest.param("PUT", "nodeqoses/n1", obj("NodeQoS", "n1", unschedulable=True), id="uncordon itself"),
    pytest.param("DELETE", "nodeqoses/n1", None, id="delete itself"),
    pytest.param("GET", "nodeqoses/n2", None, id="look at another node"),
    pytest.param("GET", "nodeqoses", None, id="list the nodes"),
    pytest.param("GET", "nodedocuments/n2", None, id="read another's document"),
    pytest.param("POST", "namespaces/default/holds", hold("h"), id="hold everywhere"),
    pytest.param("POST", "namespaces/default/holds", hold("h", node="n2"), id="hold on another node"),
    pytest.param("DELETE", "namespaces/default/holds/theirs", None, id="release another node's hold"),
    pytest.param("DELETE", "namespaces/default/holds/everyones", None, id="release a hold of all"),
    pytest.param("POST", "nodecredentials", {"node": "n2"}, id="become another node"),
    pytest.param("POST", "credentials", body("Credential", "x"), id="make a credential"),
]


@pytest.mark.parametrize("dry", [{}, {"dryRun": "All"}], ids=["", "dry"])
@pytest.mark.parametrize(("method", "path", "data"), REACH)
def test_a_node_reaches_no_further_than_itself(
    clients: dict[str, httpx.Client], method: str, path: str, data: Any, dry: dict[str, str]
) -> None:
    admin = clients["admin"]
    admin.delete(f"{BASE}/nodeqoses/n1")
    admin.post(f"{BASE}/nodeqoses", json=body("NodeQoS", "n2"))
    if method != "POST":
        admin.post(f"{BASE}/nodeqoses", json=body("NodeQoS", "n1"))
    for name, more in (("theirs", {"node": "n2"}), ("everyones", {})):
        admin.post(f"{BASE}/namespaces/default/holds", json=hold(name, **more))
    answer = clients["node"].request(method, f"{BASE}/{path}", json=data, params=dry)
    assert answer.status_code == 403, answer.text


def test_every_kind_and_role_stands_in_the_table() -> None:
    assert {role.value for role in Role} == set(ROLES) == set(ALLOWED)
    assert set(RIGHTS) == set(Role)
    assert set(PLURALS) | {"Workload"} < set(KINDS_ASKED)
