"""What is left of a link is lent evenly within a level, whatever the floors are and however large the packets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from j10ce.control.network.divide import TrafficClaim, divide
from j10ce.kernel.net import htb
from j10ce.model.knob import TargetId
from tests.enforce.net.shaping import API, MBIT, SYNC, Shaped, rate, value

LINK, MUCH, LITTLE = 200 * MBIT, 100 * MBIT, 1 * MBIT
PACKET = 1400
SOME, MANY = 2000, 8000
LARGE = 42  # packets that the kernel is handed as one
WAITING = 1_000_000  # bytes, twice: a sender that waits for a CPU is still heard, and a queue of 1,000 loses none
ENDLESS = """
import itertools, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 32, {waiting})  # SO_SNDBUFFORCE
s.setsockopt(socket.IPPROTO_UDP, 103, {packet})  # UDP_SEGMENT
for n in itertools.count():
    s.sendto(bytes({packet} * {at_once}), ("192.0.2.2", 9))
    if n * {at_once} // {packets} < (n + 1) * {at_once} // {packets}:
        print("some", flush=True)
"""


@pytest.mark.parametrize("at_once", [1, LARGE], ids=["packets of one size", "large ones beside small ones"])
def test_two_of_a_level_have_the_same_above_their_floors(shaped: Shaped, at_once: int) -> None:
    shaped.done(rate(LINK), value(API, "floor", MUCH), value(SYNC, "floor", LITTLE))
    with _sending(shaped, SYNC, at_once, SOME) as sync, _sending(shaped, API, 1, MANY) as api:
        for sender in (sync, api):
            assert sender.readline() == "some\n"
        before = _sent(shaped)
        assert api.readline() == "some\n"
        after = _sent(shaped)
    mine, theirs = (a - b for a, b in zip(after, before, strict=True))
    claims = [TrafficClaim(floor=MUCH), TrafficClaim(floor=LITTLE)]
    assert mine / (mine + theirs) == pytest.approx(divide(LINK, claims)[0] / LINK, abs=0.08)


@contextmanager
def _sending(shaped: Shaped, who: TargetId, at_once: int, packets: int) -> Iterator[IO[str]]:
    """Without an end; what it says each time that it has sent so many."""
    code = ENDLESS.format(packet=PACKET, at_once=at_once, packets=packets, waiting=WAITING)
    with shaped.started(shaped.places[who], code) as sender:
        try:
            assert sender.stdout is not None
            yield sender.stdout
        finally:
            sender.kill()


def _sent(shaped: Shaped) -> list[int]:
    return [shaped.counted(who).sent for who in (API, SYNC)]


@pytest.mark.parametrize("again", [False, True], ids=["said now", "after a restart"])
def test_turns_are_equally_long_after_another_rate_of_the_link(shaped: Shaped, again: bool) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", MUCH), value(SYNC, "floor", LITTLE))
    assert _turns(shaped) == {htb.MOST_TURN}
    if again:
        shaped.start()
    shaped.done(rate(10 * MBIT))
    assert _turns(shaped) == {htb.turn(int(10 * MBIT / 8))}


def _turns(shaped: Shaped) -> set[int]:
    shown = shaped.netns.run("tc", "-d", "class", "show", "dev", "eth0")
    return {
        int(turn)
        for turn in re.findall(r" leaf .*quantum (\d+)|prio \d+ quantum (\d+)", shown)
        for turn in turn
        if turn
    }
