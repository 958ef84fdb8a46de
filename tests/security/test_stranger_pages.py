"""What a stranger tries where nobody is asked for a token: the scheduler's page and its health, the agent's metrics."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from j10ce.agent.socket.routes import find
from j10ce.http.server import MOST_CONNECTIONS, Response, listen
from j10ce.scheduler.process.page import Page, Shown
from tests.scheduler.process.test_page import page, request


@pytest.fixture
def port() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock


async def healthy(sock: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


async def test_silent_connections_do_not_keep_a_probe_from_the_scheduler_s_health(port: socket.socket) -> None:
    """A kubelet asks once in ten seconds, and restarts what does not answer."""
    async with asyncio.timeout(8), asyncio.TaskGroup() as group:  # less than a silent one may stay
        serving = group.create_task(listen(port, page().health))
        await asyncio.sleep(0)
        silent = [await asyncio.open_connection(*port.getsockname()) for _ in range(3 * MOST_CONNECTIONS)]
        assert (await healthy(port)).startswith(b"HTTP/1.1 200")
        for _, writer in silent:
            writer.close()
        serving.cancel()


@pytest.mark.parametrize("query", [{}, {"v": "2"}, {"format": "json"}], ids=["narrow", "wide", "data"])
async def test_whoever_asks_for_the_page_without_end_takes_a_small_part_of_the_scheduler_s_time(
    query: dict[str, str],
) -> None:
    now, made = 1000.0, list[float]()

    def slowly() -> str:
        nonlocal now
        made.append(now)
        now += 1.5  # as of fifty thousand pods
        return "pods"

    shown = Shown(lambda _: slowly(), lambda: slowly().encode(), str, str, page()._shown.metrics)
    asked = Page(shown, lambda: now)
    while now < 2000.0:
        assert (await asked(request("/", query))).body == b"pods"
        now += 0.001
    assert 10 <= len(made) <= 15


async def test_a_page_that_takes_no_time_is_always_new() -> None:
    tables = iter(("one", "two"))
    shown = Shown(lambda _: next(tables), bytes, str, str, page()._shown.metrics)
    asked = Page(shown, lambda: 1000.0)
    assert [(await asked(request("/"))).body for _ in range(2)] == [b"one", b"two"]


async def test_a_web_page_of_somebody_else_is_shown_nothing_whatever_host_it_names() -> None:
    led = request("/")
    answer = await page()(led._replace(headers={**led.headers, "origin": "http://evil.example"}))
    assert (answer.status, b"narrow" in answer.body) == (403, False)


LONG = "x" * 16_000
ASKED: list[Callable[[], Awaitable[Response]]] = [
    lambda: page()(request("/", {"format": LONG})),
    lambda: page()(request("/", {"v": LONG})),
    lambda: page()(request(f"/{LONG}")),
    lambda: page()(request("/", method=LONG)),
    lambda: page().health(request(f"/{LONG}")),
    lambda: page().health(request("/", method=LONG)),
]


@pytest.mark.parametrize("ask", ASKED, ids=["format", "version", "path", "method", "health's path", "health's method"])
async def test_what_a_stranger_asks_for_is_repeated_by_its_first_characters(
    ask: Callable[[], Awaitable[Response]],
) -> None:
    answer = await ask()
    assert answer.status >= 400
    assert len(answer.body) < 1000


@pytest.mark.parametrize(("method", "path"), [("GET", f"/{LONG}"), ("PUT", f"/v1/workloads/default/{LONG}")])
def test_a_path_that_the_agent_lacks_is_repeated_by_its_first_characters(method: str, path: str) -> None:
    refused, _ = find(method, path)
    assert isinstance(refused, Response)
    assert len(refused.body) < 1000
