"""HTTP as a client, without a socket."""

from __future__ import annotations

import h11
import pytest

from j10ce.http.dialogue import Dialogue, headers


def heard(dialogue: Dialogue) -> list[object]:
    events = []
    while (event := dialogue.event()) is not None and not isinstance(event, h11.ConnectionClosed):
        events.append(event)
        if isinstance(event, h11.EndOfMessage):
            break
    return events


def test_two_requests_on_one_connection() -> None:
    dialogue = Dialogue()
    for n in (b"1", b"2"):
        sent = dialogue.request("POST", "/x", headers("http://h:1", "test", "secret", n), n)
        assert sent.startswith(b"POST /x HTTP/1.1\r\n")
        assert b"Authorization: Bearer secret" in sent
        assert sent.endswith(n)
        assert dialogue.event() is None
        dialogue.received(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + n)
        head, data, _ = heard(dialogue)
        assert isinstance(head, h11.Response)
        assert isinstance(data, h11.Data)
        assert (head.status_code, bytes(data.data)) == (200, n)
        assert dialogue.again()


def test_a_connection_that_its_peer_closes_takes_no_more() -> None:
    dialogue = Dialogue()
    dialogue.request("GET", "/", headers("unix:/run/x", "test", "", b""), b"")
    dialogue.received(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    heard(dialogue)
    assert not dialogue.again()


def test_a_peer_that_says_nothing_is_no_answer() -> None:
    dialogue = Dialogue()
    dialogue.request("GET", "/", headers("unix:/run/x", "test", "", b""), b"")
    assert not dialogue.begun
    dialogue.received(b"")
    with pytest.raises(h11.RemoteProtocolError, match="closed the connection before its answer was complete"):
        dialogue.event()


@pytest.mark.parametrize(("url", "host"), [("unix:/run/a.sock", "localhost"), ("https://[::1]:7443", "[::1]:7443")])
def test_whom_a_request_names(url: str, host: str) -> None:
    given = dict(headers(url, "test", "", b"{}"))
    assert (given["Host"], given["Content-Length"]) == (host, "2")
    assert "Authorization" not in given
