"""Several managers: agents spread over them, leave one that fails, come back in no hurry, and keep their connection."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
import pytest

from j10ce.agent.sync import servers
from j10ce.agent.sync.servers import Backoff, Servers
from j10ce.errors import Conflict, Denied, Later, NotFound, QosError, Unreachable
from j10ce.http.client import Client, Peer, Rejected, call

THREE = "https://a:1,https://b:2,https://c:3"


class Plane:
    """Answers each request as a test wants, and counts connections. `patience`: requests that a connection carries."""

    def __init__(self, *, status: int = 200, headers: tuple[tuple[str, str], ...] = (), patience: int = 1000) -> None:
        self.status, self.headers, self.patience = status, headers, patience
        self.connections = 0
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        http = h11.Connection(h11.SERVER)
        for _ in range(self.patience):
            while (event := http.next_event()) is h11.NEED_DATA:
                http.receive_data(await reader.read(65536))
            if not isinstance(event, h11.Request):
                break
            self.asked.append(event.target.decode())
            while not isinstance(http.next_event(), h11.EndOfMessage):
                pass
            head = h11.Response(status_code=self.status, headers=[("content-length", "2"), *self.headers])
            writer.write(b"".join(http.send(part) for part in (head, h11.Data(data=b"{}"), h11.EndOfMessage())))
            http.start_next_cycle()
        writer.close()


@asynccontextmanager
async def listening(plane: Plane) -> AsyncIterator[Peer]:
    server = await asyncio.start_server(plane.serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(30):
        yield Peer(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_one_connection_carries_every_report() -> None:
    plane = Plane()
    async with listening(plane) as peer:
        client = Client(peer)
        for n in range(20):
            await client.call("PUT", f"/{n}", {})
        await client.close()
    assert (len(plane.asked), plane.connections) == (20, 1)


async def test_a_connection_that_was_closed_while_it_rested_is_replaced() -> None:
    plane = Plane(patience=1)
    async with listening(plane) as peer:
        client = Client(peer)
        for n in range(5):
            await client.call("PUT", f"/{n}", {})
        await client.close()
    assert plane.asked == ["/0", "/1", "/2", "/3", "/4"]


async def test_calls_at_once_take_turns_on_the_connection() -> None:
    plane = Plane()
    async with listening(plane) as peer:
        client = Client(peer)
        await asyncio.gather(*(client.call("GET", f"/{n}") for n in range(20)))
        await client.close()
    assert (len(plane.asked), plane.connections) == (20, 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Denied), (403, Rejected), (404, NotFound), (409, Conflict), (413, Rejected), (422, Rejected),
        (429, Later), (503, Later), (500, QosError),
    ],
)  # fmt: skip
async def test_answers_tell_what_to_do_next(status: int, error: type[QosError]) -> None:
    async with listening(Plane(status=status)) as peer:
        with pytest.raises(error):
            await call(peer, "GET", "/")


@pytest.mark.parametrize(("given", "after_s"), [("7", 7.0), ("soon", 0.0), ("-1", 0.0)])
async def test_a_busy_manager_says_when_to_come_back(given: str, after_s: float) -> None:
    async with listening(Plane(status=503, headers=(("retry-after", given),))) as peer:
        with pytest.raises(Later) as refused:
            await call(peer, "GET", "/")
    assert refused.value.after_s == after_s


def test_agents_spread_over_the_managers_and_over_those_that_are_left() -> None:
    fleet = [Servers(Peer(THREE), f"node-{n}") for n in range(300)]
    first = Counter(one.current.url for one in fleet)
    assert min(first.values()) > 70
    moved = [one for one in fleet if one.current.url == "https://a:1"]
    for one in moved:
        one.leave(one.current)
    assert min(Counter(one.current.url for one in moved).values()) > 25


def test_a_node_keeps_its_order_over_restarts() -> None:
    one, again = (Servers(Peer(THREE), "node-7") for _ in range(2))
    assert one.current == again.current


def test_two_tasks_that_notice_the_same_failure_move_on_once() -> None:
    one = Servers(Peer(THREE), "n")
    failed = one.current
    one.leave(failed)
    here = one.current
    one.leave(failed)
    assert one.current == here != failed


def test_every_manager_is_tried_before_the_first_again_and_home_is_the_first() -> None:
    one = Servers(Peer(THREE), "n")
    home, tried = one.current, []
    for _ in range(3):
        tried.append(one.current.url)
        one.leave(one.current)
    assert (sorted(tried), one.current) == (sorted(THREE.split(",")), home)
    one.leave(one.current)
    one.go_home()
    assert one.current == home


async def waits(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(servers.asyncio, "sleep", sleep)
    backoff = Backoff()
    for error in errors:
        await backoff.wait(error)
    return slept


async def test_waits_double_are_spread_and_end_at_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [await waits(monkeypatch, *[Unreachable("gone")] * 8) for _ in range(200)]
    longest = [max(column) for column in zip(*rows, strict=True)]
    assert all(limit * 0.9 < most <= limit for most, limit in zip(longest, (1, 2, 4, 8, 16, 30, 30, 30), strict=True))
    assert min(row[5] for row in rows) < 3.0


async def test_what_a_manager_asks_for_is_waited_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [await waits(monkeypatch, Later("busy", 5.0)) for _ in range(50)]
    assert all(5.0 <= row[0] <= 6.0 for row in rows)
