"""One table of errors and codes: every server answers by it, every client understands by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import h11
import msgspec
import pytest

from j10ce.cli import client as cli_client
from j10ce.cli.output import report
from j10ce.errors import (
    AlreadyExists,
    Closed,
    Compacted,
    Conflict,
    Denied,
    FieldConflict,
    Finding,
    Invalid,
    Later,
    Malformed,
    NotFound,
    NotServed,
    QosError,
    StoreError,
    Unreachable,
    Unsupported,
    Unsure,
)
from j10ce.http import client, server
from j10ce.http.status import ANSWERS, CODES, Refusal, answer_to, error_of, exit_code, status_of
from j10ce.kube.failure import failure
from j10ce.manager.asgi.status import answer
from j10ce.manager.grpc.status import code_of
from j10ce.model.stored import Key, Unreadable

MADE: dict[type[QosError], QosError] = {
    Invalid: Invalid([Finding("spec.units", 0, "too few", "use 1 or more")], "policy"),
    Malformed: Malformed([Finding("", None, "not JSON")], "policy"),
    Unsupported: Unsupported("io.max", needs="cgroup v2"),
    FieldConflict: FieldConflict([("kubectl", ".spec.units")]),
    Closed: Closed(),
    Later: Later("come back", 3.0),
    Unreadable: Unreadable(Key("Hold", "default", "h"), "no spec"),
}


def errors_of(kind: type[QosError]) -> Iterator[type[QosError]]:
    """Those of the shared tree; a room's own errors count as the one that they derive from."""
    if kind.__module__ in ("j10ce.errors", "j10ce.model.stored"):
        yield kind
        for below in kind.__subclasses__():
            yield from errors_of(below)


EVERY = sorted(set(errors_of(QosError)), key=lambda kind: kind.__name__)


def made(kind: type[QosError]) -> QosError:
    return MADE.get(kind) or kind("it failed")


@pytest.mark.parametrize("kind", EVERY)
def test_agent_manager_and_grpc_answer_an_error_alike(kind: type[QosError]) -> None:
    error, row = made(kind), answer_to(made(kind))
    by_agent, by_manager = server.failure(error), answer(error)
    assert by_agent.status == by_manager.status_code == row.code
    for body in (by_agent.body, bytes(by_manager.body)):
        status = status_of(body)
        assert (status.code, status.reason, status.message) == (row.code, row.reason, str(error))
    assert code_of(error) is grpc.StatusCode[row.grpc]


@pytest.mark.parametrize("kind", EVERY)
def test_a_command_understands_what_a_server_answered(kind: type[QosError], capsys: pytest.CaptureFixture[str]) -> None:
    """Through HTTP and back, an error keeps its class as far as the table tells it, its words and its exit code."""
    error = made(kind)
    for body in (server.failure(error).body, bytes(answer(error).body)):
        read = cli_client._error(answer_to(error).code, body, "GET /apis")
        assert type(read) is error_of(answer_to(error).code, answer_to(error).reason)
        if isinstance(error, Invalid | Conflict | NotFound | Denied | Unreachable):
            assert isinstance(error, type(read))
            assert report(read) == exit_code(type(error)) > 1
    assert "too few; use 1 or more" in str(cli_client._error(422, server.failure(MADE[Invalid]).body, ""))


CLIENTS = [
    pytest.param(400, client.Rejected, StoreError, id="400"),
    pytest.param(401, Denied, Denied, id="401"),
    pytest.param(403, client.Rejected, Denied, id="403"),
    pytest.param(404, NotFound, NotServed, id="404"),  # without a name, the kind itself is unknown
    pytest.param(405, QosError, StoreError, id="405"),
    pytest.param(406, QosError, StoreError, id="406"),
    pytest.param(408, QosError, StoreError, id="408"),
    pytest.param(409, Conflict, Conflict, id="409"),
    pytest.param(410, Compacted, Compacted, id="410"),
    pytest.param(413, client.Rejected, StoreError, id="413"),
    pytest.param(415, client.Rejected, StoreError, id="415"),
    pytest.param(422, client.Rejected, Invalid, id="422"),
    pytest.param(429, Later, Later, id="429"),
    pytest.param(500, QosError, Unsure, id="500"),
    pytest.param(501, QosError, Unsure, id="501"),
    pytest.param(503, Later, Later, id="503"),
    pytest.param(504, Unsure, Unsure, id="504"),
]


def test_every_code_is_known_to_both_clients() -> None:
    assert {row.values[0] for row in CLIENTS} == set(CODES)
    assert {row.code for row in ANSWERS} <= set(CODES)


@pytest.mark.parametrize(("code", "agent", "kubernetes"), CLIENTS)
def test_an_agent_and_the_client_of_kubernetes_understand_a_code(
    code: int, agent: type[QosError], kubernetes: type[QosError]
) -> None:
    """Both by the table, and each where it needs more: an agent may give up, a store must know what was written."""
    body = bytes(answer(Refusal(code, "no", {"retry-after": "7"})).body)
    head = h11.Response(status_code=code, headers=[("Retry-After", "7")])
    with pytest.raises(QosError) as raised:
        client._check(head, body, "GET /apis")
    understood = failure(code, status_of(body), "GET /apis", "j10ce", "7")
    assert (type(raised.value), type(understood)) == (agent, kubernetes)
    assert "no" in str(raised.value)
    assert "no" in str(understood)
    assert all(e.after_s == 7 for e in (raised.value, understood) if isinstance(e, Later))


def test_a_proxy_before_a_dead_server_may_have_passed_a_write_on() -> None:
    """It has no Status, unlike the API server's own 503, which is said before anything is stored."""
    assert type(failure(503, status_of(b"<html>bad gateway</html>"), "PUT /x", "j10ce")) is Unsure


@pytest.mark.parametrize("reason", ["AlreadyExists", "Busy", "Conflict", "SomethingElse"])
def test_a_reason_tells_conflicts_apart(reason: str) -> None:
    kinds: dict[str, Any] = {row.reason: row.error for row in ANSWERS if row.reason}
    assert error_of(409, reason) is kinds.get(reason, Conflict)
    assert issubclass(AlreadyExists, Conflict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<html>502</html>", "<html>502</html>"),
        (b"", ""),
        (msgspec.json.encode({"message": "gone", "code": 410}), "gone"),
        (b"[1]", "[1]"),
    ],
)
def test_an_answer_that_is_no_status_is_repeated_as_it_is(text: bytes, message: str) -> None:
    assert status_of(text).message == message
