"""What the scheduler answers over HTTP, to whom."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import msgspec
import pytest

from j10ce.errors import Denied, Invalid
from j10ce.http.server import Request, Response
from j10ce.scheduler.process.metrics import SchedulerMetrics
from j10ce.scheduler.process.page import Page, Shown, bind

TABLES = {1: "narrow\n", 2: "wide\n"}


def page(problem: str = "") -> Page:
    return Page(
        Shown(
            lambda version: TABLES[version],
            lambda: b'{"owners":[]}',
            lambda: problem,
            lambda: "leader",
            SchedulerMetrics(),
        )
    )


def request(
    path: str, query: Mapping[str, str] | None = None, method: str = "GET", host: str = "localhost:10000"
) -> Request:
    return Request(method, path, query or {}, {"host": host}, b"", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "body"),
    [({}, b"narrow\n"), ({"v": "2"}, b"wide\n"), ({"format": "json"}, b'{"owners":[]}')],
    ids=["as of old", "wide", "data"],
)
async def test_the_page_has_three_forms(query: Mapping[str, str], body: bytes) -> None:
    answer = await page()(request("/", query))
    assert (answer.status, answer.body) == (200, body)


@pytest.mark.parametrize("query", [{"v": "3"}, {"format": "xml"}, {"v": ""}])
async def test_a_form_that_there_is_not_is_refused_with_those_there_are(query: Mapping[str, str]) -> None:
    answer = await page()(request("/", query))
    assert answer.status == 400
    assert "table or json" in message(answer)


@pytest.mark.parametrize("host", ["evil.example:10000", "evil.example", "127.0.0.1.evil.example"])
async def test_a_browser_that_was_led_here_by_another_name_sees_nothing(host: str) -> None:
    answer = await page()(request("/", host=host))
    assert answer.status == 403
    assert b"narrow" not in answer.body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:10000", "[::1]:10000"])
async def test_this_machine_has_many_names(host: str) -> None:
    assert (await page()(request("/", host=host))).status == 200


async def test_ready_is_who_has_read_everything() -> None:
    ready, unready = page(), page("still being read: Pod")
    assert (await ready(request("/readyz"))).status == 200
    answer = await unready(request("/readyz", {"verbose": ""}))
    assert answer.status == 503
    assert answer.body == b"still being read: Pod\nrole: leader\n"
    assert (await unready(request("/healthz"))).status == 200, "to be restarted would not help"


async def test_probes_from_elsewhere_learn_nothing_of_pods() -> None:
    shown = page()
    for path in ("/", "/metrics", "/debug"):
        assert (await shown.health(request(path, host="10.0.0.7:10251"))).status == 404
    assert (await shown.health(request("/readyz", host="10.0.0.7:10251"))).status == 200


async def test_nothing_can_be_written() -> None:
    assert (await page()(request("/", method="POST"))).status == 405
    assert (await page().health(request("/healthz", method="DELETE"))).status == 405


@pytest.mark.parametrize("address", ["0.0.0.0:10000", "[::]:10000", "10.1.2.3:10000", "example.com:10000"])
def test_the_page_listens_on_this_machine_alone(address: str) -> None:
    with pytest.raises(Invalid, match="this machine alone"):
        bind(address, "--listen", loopback=True)


@pytest.mark.parametrize("address", ["10000", "localhost:", "localhost:ssh", "localhost:70000", ""])
def test_what_is_no_address_is_said_so(address: str) -> None:
    with pytest.raises(Invalid, match="--listen"):
        bind(address, "--listen", loopback=True)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Denied, match=f"127.0.0.1:{port}"):
            bind(f"127.0.0.1:{port}", "--listen", loopback=True)


def message(answer: Response) -> str:
    text: str = msgspec.json.decode(answer.body)["message"]
    return text
