"""What comes in by a link is in the class of whoever it is for, and all is as it was once that ends."""

from __future__ import annotations

import math
import re
import sys
from contextlib import ExitStack

import pytest

from j10ce.kernel.net import htb, ingress, probation
from j10ce.model.knob import Setting
from tests.enforce.net.shaping import API, ETH0, MBIT, NO_PROGRAM, SYNC, Shaped, rate, value

RATE = Setting(ETH0, "link.ingress.rate")
PACKET = 1042
PATIENCE_S = 60
HEAR = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 5353))
group = socket.inet_aton("224.0.0.251") + socket.inet_aton("192.0.2.1")
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
s.settimeout({PATIENCE_S})
print("ready", flush=True)
print(s.recv(99).decode())
"""
CALL = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("192.0.2.2"))
s.sendto(b"heard", ("224.0.0.251", 5353))
"""


@pytest.fixture
def inward(shaped: Shaped) -> Shaped:
    if needs := shaped.support["ingress"].needs:
        pytest.skip(f"Unsupported: what comes in needs {needs}")
    return shaped


def everything(shaped: Shaped) -> str:
    """Queues, programs and links, of which ours are named after the other's index. Whether a link is up, the kernel
    says a while later."""
    hook = shaped.netns.run("tc", "filter", "show", "dev", "eth0", "ingress")
    links = shaped.netns.run("ip", "-o", "link", "show")
    return shaped.picture() + hook + re.sub(r"<\S*>|state \S+", "", links)


def test_packets_are_in_the_class_of_the_cgroup_that_listens(inward: Shaped) -> None:
    inward.done(rate(1000 * MBIT, "ingress"), value(API, "floor", 100 * MBIT, "ingress"))
    inward.receive(inward.places[API], count=50)
    inward.receive(inward.places[SYNC], count=20)
    assert inward.counted(API, "ingress").sent // PACKET == 50
    assert inward.counted(htb.OTHERS, "ingress").sent // PACKET >= 20


def test_both_ways_are_told_apart(inward: Shaped) -> None:
    inward.done(rate(1000 * MBIT), rate(500 * MBIT, "ingress"))
    inward.done(value(API, "ceil", 50 * MBIT), value(API, "ceil", 30 * MBIT, "ingress"))
    inward.send(inward.places[API], count=10)
    inward.receive(inward.places[API], count=5)
    assert (inward.counted(API).sent // PACKET, inward.counted(API, "ingress").sent // PACKET) == (10, 5)
    held = [inward.kernel.settings[Setting(API, f"net.{way}.ceil", "eth0")] for way in ("egress", "ingress")]
    assert held == [50 * MBIT, 30 * MBIT]


def test_whoever_starts_again_finds_it_and_revert_leaves_what_was_there(inward: Shaped) -> None:
    before = everything(inward)
    inward.done(rate(1000 * MBIT, "ingress"), value(API, "floor", 100 * MBIT, "ingress"))
    inward.start()
    assert inward.kernel.settings[RATE] == 1000 * MBIT
    assert inward.kernel.settings[Setting(API, "net.ingress.floor", "eth0")] == 100 * MBIT
    assert not inward.kernel.revert().refused()
    assert everything(inward) == before


def test_programs_of_others_there_decide_first_so_that_nothing_is_begun(inward: Shaped) -> None:
    inward.netns.run("tc", "qdisc", "add", "dev", "eth0", "clsact")
    match = ("protocol", "ip", "u32", "match", "u32", "0", "0", "flowid", "1:1")
    inward.netns.run("tc", "filter", "add", "dev", "eth0", "ingress", "prio", "1", *match)
    before = everything(inward)
    ((_, refused),) = inward.apply(rate(1000 * MBIT, "ingress")).refused()
    assert "'u32' of somebody else" in refused.reason
    assert everything(inward) == before


def test_the_place_where_programs_hang_stays_where_it_was_there_before(inward: Shaped) -> None:
    inward.netns.run("tc", "qdisc", "add", "dev", "eth0", "clsact")
    before = everything(inward)
    inward.done(rate(1000 * MBIT, "ingress"))
    assert not inward.kernel.revert().refused()
    assert everything(inward) == before


def test_a_link_of_ours_that_somebody_was_killed_over_goes_at_the_next_start(inward: Shaped) -> None:
    before = everything(inward)
    ingress.make(inward.trees.netlink, inward.trees.index("eth0") or 0)
    assert "j10ce-i" in everything(inward)
    inward.start()
    assert everything(inward) == before


def test_a_program_that_somebody_takes_away_is_noticed_and_put_there_again(inward: Shaped) -> None:
    inward.done(rate(1000 * MBIT, "ingress"))
    inward.netns.run("tc", "qdisc", "del", "dev", "eth0", "clsact")
    assert [d.theirs for d in inward.kernel.read_now([ETH0])] == [math.inf]
    inward.done(rate(1000 * MBIT, "ingress"))
    assert inward.kernel.settings[RATE] == 1000 * MBIT


def test_where_nothing_comes_in_the_link_has_back_what_it_had(inward: Shaped) -> None:
    before = everything(inward)
    inward.done(rate(1000 * MBIT, "ingress"))
    inward.netns.ip("link", "set", "eth0", "down", at=inward.netns.peer)
    with inward.netns.inside():
        started = probation.start(inward.trees.index("eth0") or 0, "ingress", "", 0.5)
    assert started.wait() == probation.WENT_BACK
    inward.netns.ip("link", "set", "eth0", "up", at=inward.netns.peer)
    assert everything(inward) == before


def test_what_is_sent_to_many_reaches_each_of_them(inward: Shaped) -> None:
    inward.done(rate(1000 * MBIT, "ingress"))
    with ExitStack() as all_of_them:
        hearing = [all_of_them.enter_context(inward.started(inward.places[who], HEAR)) for who in (API, SYNC)]
        assert [h.stdout.readline() for h in hearing if h.stdout] == ["ready\n"] * 2
        inward.netns.run(sys.executable, "-c", CALL, at=inward.netns.peer)
        assert [h.communicate()[0] for h in hearing] == ["heard\n"] * 2


def test_where_no_program_can_be_loaded_nothing_of_ours_stays(inward: Shaped, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(inward)
    monkeypatch.setattr(ingress, "director", lambda *_, **__: NO_PROGRAM)
    ((_, refused),) = inward.apply(rate(1000 * MBIT, "ingress")).refused()
    assert "the verifier says" in refused.reason
    assert everything(inward) == before
