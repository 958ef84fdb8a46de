"""What a stranger on the network tries, without any token."""

from __future__ import annotations

import socket
import ssl

import pytest

from j10ce.manager import connection
from tests.security.plane import Manager

ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def raw(manager: Manager, data: bytes) -> bytes:
    """All that the manager answers to these bytes."""
    plain = socket.create_connection(("127.0.0.1", manager.port), 30)
    with manager.plane.trust().wrap_socket(plain, server_hostname="localhost") as tls:
        tls.sendall(data)
        received = b""
        try:
            while more := tls.recv(65536):
                received += more
        except (ssl.SSLEOFError, ConnectionResetError):
            pass
    return received


def test_a_stranger_may_ask_whether_we_are_well(shared: Manager) -> None:
    assert raw(shared, ASK).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "path", ["/nothing/" + "x" * 10_000, "/apis/j10ce.io/v1alpha1/" + "x" * 10_000], ids=["anywhere", "an object"]
)
def test_a_path_is_not_repeated_whole(shared: Manager, path: str) -> None:
    with shared.client() as client:
        answer = client.get(path)
    assert answer.status_code == 401
    assert len(answer.content) < 1_000


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n", id="two hosts"),
        pytest.param(b"GET /healthz HTTP/1.1\r\n", id="no host"),
        pytest.param(b"GET https://evil/healthz HTTP/1.1\r\nHost: localhost\r\n", id="a target of another host"),
    ],
)
def test_a_request_names_one_host(shared: Manager, head: bytes) -> None:
    assert raw(shared, head + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_a_target_that_names_the_host_itself_is_fine(shared: Manager) -> None:
    received = raw(shared, b"GET https://LOCALHOST/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 200")


def test_a_long_path_takes_little_of_the_audit_log(shared: Manager) -> None:
    with shared.client() as client:
        assert client.get("/openapi/" + "A" * 15_000).status_code == 401
    line = next(line for line in shared.plane.audit.read_text().splitlines() if "/openapi/AAA" in line)
    assert "A" * 201 not in line
    assert len(line) < 1_000


def unended(manager: Manager, data: bytes) -> bytes:
    """What the manager answers to a request that goes on without end, until it closes the connection."""
    early = connection.ARRIVAL_S / 2  # or it would be closed for its slowness
    plain = socket.create_connection(("127.0.0.1", manager.port), early)
    received = b""
    with manager.plane.trust().wrap_socket(plain, server_hostname="localhost") as tls:
        try:
            tls.sendall(data)
            while more := tls.recv(65536):
                received += more
        except (ssl.SSLError, ConnectionError):
            pass
    return received


def test_requests_that_do_not_wait_for_answers_are_not_queued_without_end(shared: Manager) -> None:
    """Six thousand of them in one packet took 15 MiB for as long as nobody read the answers."""
    ask = ASK.replace(b"Connection: close\r\n", b"")
    assert unended(shared, ask * 6_000).count(b"HTTP/1.1") <= connection.MOST_AHEAD + 1


def test_a_few_requests_may_be_sent_at_once(shared: Manager) -> None:
    ask = ASK.replace(b"Connection: close\r\n", b"")
    assert raw(shared, ask * 7 + ASK).count(b"HTTP/1.1 200") == 8


CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ASK[:-2] + b"ab:cd\r\n" * 101, id="many headers"),
        pytest.param(ASK[:-2] + b"a:" + b"b" * 40_000, id="a long header"),
        pytest.param(b"GET /" + b"b" * 40_000, id="a long address"),
        pytest.param(CHUNKED + b"ab:cd\r\n" * 101, id="many headers after the body"),
        pytest.param(CHUNKED + b"a:" + b"b" * 40_000, id="a long header after the body"),
        pytest.param(CHUNKED[:-5] + b"1;" + b"b" * 40_000, id="a long word about a piece of the body"),
    ],
)
def test_what_is_no_body_is_kept_only_while_it_is_short(shared: Manager, data: bytes) -> None:
    """None of these requests ever ends: the manager has to end the connection."""
    received = unended(shared, data)
    assert received == b"" or received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 405"))
