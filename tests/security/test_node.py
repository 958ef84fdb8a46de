"""What a node that was taken over tries: it can lie about itself, and nothing more."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx2 as httpx
import pytest
from msgspec import Struct, structs

from j10ce.manager.changes import nulls
from j10ce.model.kinds import Hold
from tests.security.plane import BASE, Manager, hold

MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
NODE = f"{BASE}/nodeqoses/n1"
MOST = 64 * 1024  # bytes of a report


@pytest.fixture(scope="module")
def node(shared: Manager) -> Iterator[httpx.Client]:
    """The host n1, which has reported once."""
    with shared.client("node") as client:
        made = client.post(f"{BASE}/nodeqoses", json={**HEAD, "metadata": {"name": "n1"}})
        assert made.status_code == 201
        yield client


HEAD = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS"}


def report(client: httpx.Client, **said: object) -> httpx.Response:
    return client.patch(f"{NODE}/status", json={"status": {"node": said}}, headers=MERGE)


def test_a_selector_of_blanks_is_refused_by_its_length(node: httpx.Client) -> None:
    answer = node.get(f"{BASE}/nodedocuments/n1?labelSelector=" + "+" * 15_000 + "!")
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "labelSelector")
    assert "too long" in answer.json()["message"]
    assert len(answer.content) < 2_000


@pytest.mark.parametrize("body", [b"a: 1" + b":1" * 30_000, b"- a\n" * 15_000], ids=["base 60", "a long list"])
def test_yaml_is_not_read_from_a_node(node: httpx.Client, body: bytes) -> None:
    answer = node.patch(f"{NODE}/status?fieldManager=x", content=body, headers=APPLY)
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")


def test_a_report_above_its_size_is_not_even_read(node: httpx.Client) -> None:
    answer = report(node, capacity={"cpu": "4" + " " * 900_000})
    assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")


def test_a_report_does_not_grow_beyond_its_size_by_many_patches(node: httpx.Client) -> None:
    """Each patch adds entries, and is small."""
    codes = [report(node, failing={f"QoSProfile/p{n}-{m}": "x" * 500 for m in range(40)}).status_code for n in range(6)]
    assert codes[0] == 200
    assert codes[-1] == 422
    assert len(json.dumps(node.get(NODE).json()["status"]["node"])) <= MOST
    assert report(node, failing=None).status_code == 200, "it can report less again"


def test_a_string_beyond_its_bound_is_refused_and_not_repeated(node: httpx.Client) -> None:
    answer = report(node, bootId="b" * 60_000)
    assert answer.status_code == 422
    assert "status.node.bootId" in answer.text
    assert "b" * 201 not in answer.text


def test_a_list_beyond_its_bound_is_refused(node: httpx.Client) -> None:
    answer = report(node, pressure={f"p{n}": 0 for n in range(2_000)})
    assert answer.status_code == 422


PAIR = {"victim": "a", "antagonist": "b", "resource": "cpu", "suffering": "x", "evidence": "x"}
FLOOR = {"workload": "a/b", "resource": "diskRead", "promised": "1M", "effective": "1M", "reason": "x"}
MANY = {f"{n}m": {"cpu": {"avg": "1"}} for n in range(1_025)}


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"capacity": {"network": "2000Tbit"}}, "capacity.network"),
        ({"capacity": {"diskRead": "9E"}}, "capacity.diskRead"),
        ({"capacity": {"gpu": "1"}}, "capacity.gpu"),
        ({"usageOver": {"5m": {"diskWrite": {"avg": "50%"}}}}, "usageOver.5m.diskWrite.avg"),
        ({"usageOver": MANY}, "usageOver"),
        ({"zones": {"0": {"cpu": {"capacity": "9E"}}}}, "zones.0.cpu.capacity"),
        ({"topology": {"threads": 10**9}}, "topology.threads"),
        ({"topology": {"l3Caches": [{"id": 0, "cpus": "0-7; rm"}]}}, "topology.l3Caches[0].cpus"),
        ({"interference": [PAIR | {"correlation": 7}]}, "interference[0].correlation"),
        ({"interference": [PAIR | {"samples": -1}]}, "interference[0].samples"),
        ({"evictions": [{"namespace": "../kube-system", "name": "etcd"}]}, "evictions[0]"),
        ({"effective": [FLOOR | {"node": "n2"}]}, "effective[0].node"),
        ({"pressure": {"io": 101}}, "pressure.io"),
    ],
)
def test_what_no_machine_has_is_refused_where_it_stands(node: httpx.Client, said: dict[str, Any], field: str) -> None:
    answer = report(node, **said)
    assert answer.status_code == 422, answer.text
    assert f"status.node.{field}" in [cause["field"] for cause in answer.json()["details"]["causes"]]
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_strategies_of_machines_are_not_a_node_s_to_read_or_write(node: httpx.Client, method: str) -> None:
    """Its document has those that concern it."""
    path = f"{BASE}/nodestrategies" + ("/any" if method == "DELETE" else "")
    spec = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeStrategy", "metadata": {"name": "any"}, "spec": {}}
    assert node.request(method, path, json=spec if method == "POST" else None).status_code == 403


def test_nesting_is_refused_where_it_is_decoded(node: httpx.Client) -> None:
    deep: object = {}
    for _ in range(70):
        deep = {"f:a": deep}
    fields = [{"manager": "evil", "operation": "Apply", "fieldsV1": deep}]
    made = {**hold("deep", node="n1"), "metadata": {"name": "deep", "managedFields": fields}}
    answer = node.post(f"{BASE}/namespaces/default/holds", json=made)
    assert (answer.status_code, "nested too deeply" in answer.text) == (400, True)
    assert node.patch(f"{NODE}/status", content=b'{"a":' * 900 + b"1" + b"}" * 900, headers=MERGE).status_code == 400


def test_amounts_with_blanks_are_the_amounts(node: httpx.Client) -> None:
    assert report(node, capacity={"cpu": " 4" + " " * 500}).status_code == 200
    assert node.get(NODE).json()["status"]["node"]["capacity"] == {"cpu": "4"}
    assert report(node, capacity={"cpu": "4" + "0" * 500}).status_code == 422


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_at_the_end_of_the_calendar_is_refused(node: httpx.Client, moment: str) -> None:
    """In another zone it would be no time at all, for every list that shows it and every keeper that reads it."""
    answer = report(node, heartbeat=moment)
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "status.node.heartbeat")
    answer = report(node, conditions=[{"type": "Odd", "status": "True", "lastTransitionTime": moment}])
    field = "status.node.conditions[0].lastTransitionTime"
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, field)
    made = hold("poison", node="n1")
    owners = [{"manager": "x", "time": moment, "fieldsV1": {"f:a": {}}}]
    owned = node.post(
        f"{BASE}/namespaces/default/holds", json={**made, "metadata": {"name": "poison", "managedFields": owners}}
    )
    assert (owned.status_code, owned.json()["details"]["causes"][0]["field"]) == (422, "metadata.managedFields[0].time")
    made["spec"] = {**made["spec"], "expires": moment}  # type: ignore[dict-item]
    held = node.post(f"{BASE}/namespaces/default/holds", json=made)
    assert (held.status_code, held.json()["details"]["causes"][0]["field"]) == (422, "spec.expires")


@pytest.mark.parametrize(
    ("knobs", "value", "field"),
    [
        pytest.param(["cpuset.cpus"] * 1_000, ",".join(["0-7"] * 200), "spec.knobs[1]", id="one knob many times"),
        pytest.param(["cpuset.cpus"], ",".join(["0-65535"] * 127), "spec.value", id="many CPUs"),
        pytest.param(["cpuset.cpus"], ",".join(["0-8191"] * 127), "spec.value", id="the same CPUs many times"),
    ],
)
def test_a_hold_that_would_be_read_for_minutes_is_refused(
    node: httpx.Client, knobs: list[str], value: str, field: str
) -> None:
    made = hold("slow", node="n1", value=value)
    made["spec"] = {**made["spec"], "knobs": knobs}  # type: ignore[dict-item]
    answer = node.post(f"{BASE}/namespaces/default/holds", json=made)
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, field)
    assert len(answer.content) < 30_000


@pytest.mark.parametrize("owners", [1_000, 10_000])
def test_a_hold_of_many_owners_and_a_null_is_refused_without_looking_at_each(
    node: httpx.Client, monkeypatch: pytest.MonkeyPatch, owners: int
) -> None:
    """What fields an owner has was found out for every one of them: 64 KiB took seconds of everybody's time."""
    made = {**hold("owned", node="n1"), "metadata": {"name": "owned", "labels": None, "ownerReferences": [{}] * owners}}
    asked: list[type[Struct]] = []

    def counted(of: type[Struct]) -> tuple[structs.FieldInfo, ...]:
        asked.append(of)
        return structs.fields(of)

    monkeypatch.setattr(nulls, "fields", counted)
    given = nulls.fields_given(made, Hold)
    assert len(asked) == len(set(asked))
    assert (given["metadata"]["ownerReferences"] is made["metadata"]["ownerReferences"]) is (owners > 1024)  # type: ignore[index]
    answer = node.post(f"{BASE}/namespaces/default/holds", json=made)
    field = "metadata.ownerReferences" + ("" if owners > 1024 else "[0].apiVersion")
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, field)


def asking(manager: Manager, role: str) -> ssl.SSLSocket:
    """A connection that has asked once, and stays."""
    plain = socket.create_connection(("127.0.0.1", manager.port), 30)
    wire = manager.plane.trust().wrap_socket(plain, server_hostname="localhost")
    token = manager.plane.tokens[role]
    wire.sendall(
        f"GET {BASE} HTTP/1.1\r\nHost: 127.0.0.1:{manager.port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    received = wire.recv(65536)
    assert received.startswith(b"HTTP/1.1 200")
    return wire


def test_a_node_with_too_many_connections_loses_its_own(shared: Manager) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(asking(shared, "admin"))
        wires = [stack.enter_context(asking(shared, "node")) for _ in range(32 + 5)]
        for wire in wires[:5]:
            with suppress(ssl.SSLEOFError, ConnectionResetError):
                while wire.recv(65536):  # what is left of the answer, then the end
                    pass
        for wire in (admin, wires[-1]):
            wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            received = b""
            while b"\r\n\r\nok\n" not in received:
                more = wire.recv(65536)
                assert more, "it was cut off"
                received += more
