"""What leaves together on a connection."""

from __future__ import annotations

import asyncio

import pytest

from j10ce.manager.connection import MOST_HELD, Joined


class Line(asyncio.Transport):
    """Notes what was written, packet by packet."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[bytes] = []
        self.closed = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        assert not self.closed, "written after its end"
        self.packets.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


@pytest.fixture
async def line() -> Line:
    return Line()


@pytest.fixture
async def joined(line: Line) -> Joined:
    return Joined(line, asyncio.get_running_loop())


async def test_a_head_and_its_body_are_one_packet(line: Line, joined: Joined) -> None:
    joined.write(b"head ")
    joined.write(b"body")
    assert line.packets == []
    await asyncio.sleep(0)
    joined.write(b"the next")
    await asyncio.sleep(0)
    assert line.packets == [b"head body", b"the next"]


async def test_much_leaves_at_once_and_uncopied(line: Line, joined: Joined) -> None:
    """So that the transport can ask for a pause, and an answer that nobody reads is in memory once."""
    body = bytes(MOST_HELD)
    joined.write(b"head")
    joined.write(body)
    assert line.packets[0] == b"head"
    assert line.packets[1] is body
    joined.write(b"rest")
    await asyncio.sleep(0)
    assert line.packets[2:] == [b"rest"]


async def test_what_was_written_before_the_end_leaves_before_it(line: Line, joined: Joined) -> None:
    joined.write(b"last words")
    joined.close()
    assert (line.packets, line.closed) == ([b"last words"], True)


async def test_a_peer_that_left_is_sent_nothing(line: Line, joined: Joined) -> None:
    joined.write(b"too late")
    line.close()
    joined.write(bytes(MOST_HELD))
    await asyncio.sleep(0)
    assert line.packets == []
