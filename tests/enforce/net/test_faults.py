"""What goes wrong at a link is refused with its reason, and what was there goes on."""

from __future__ import annotations

import sys
import threading

import pytest

from j10ce.kernel.net import tree, trees
from j10ce.model.knob import Setting, link, workload
from j10ce.model.plan import Gone, Refused, ValueChange
from tests.enforce.net.shaping import API, ETH0, MBIT, NO_PROGRAM, RATE, SYNC, Shaped, rate, value

PACKET = 1042
FLAPS = 20
SEND6 = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for _ in range(10):
    s.sendto(bytes(1000), ("fd00:c0de::2", 9))
"""


def reasons(shaped: Shaped, *changes: object) -> list[str]:
    refused = shaped.apply(*changes).refused()  # type: ignore[arg-type]
    return [answer.reason for _, answer in refused if isinstance(answer, Refused)]


def test_a_program_that_the_verifier_refuses_is_no_program_and_the_link_is_as_it_was(
    shaped: Shaped, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = shaped.picture()
    monkeypatch.setattr(tree, "classifier", lambda *_, **__: NO_PROGRAM)
    (why,) = reasons(shaped, rate(1000 * MBIT))
    assert "the verifier says" in why
    assert shaped.picture() == before


def test_a_workload_for_which_no_program_can_be_loaded_is_refused_and_others_keep_theirs(
    shaped: Shaped, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaped.done(rate(1000 * MBIT), value(SYNC, "ceil", 50 * MBIT))
    deeper = workload("default", "deeper")
    shaped.places[deeper] = shaped.work.make("api", "inner")
    shaped.track()
    monkeypatch.setattr(tree, "classifier", lambda *_, **__: NO_PROGRAM)
    (why,) = reasons(shaped, value(deeper, "ceil", 50 * MBIT))
    assert "the verifier says" in why
    shaped.send(shaped.places[SYNC], count=10)
    assert shaped.counted(SYNC).sent // PACKET == 10


def test_a_full_map_refuses_whoever_does_not_fit_and_nobody_else(
    shaped: Shaped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MOST_CLASSES", 2)
    shaped.done(rate(1000 * MBIT), value(API, "ceil", 50 * MBIT))
    late = [shaped.admit(f"late{n}") for n in range(4)]
    whys = [why for who in late for why in reasons(shaped, value(who, "ceil", MBIT))]
    assert whys
    assert all("full" in why or "fit" in why for why in whys)
    shaped.done(value(API, "ceil", 60 * MBIT))
    shaped.start()
    assert shaped.kernel.settings[Setting(API, "net.egress.ceil", "eth0")] == 60 * MBIT


def test_a_link_that_moves_to_another_namespace_is_gone_and_nothing_is_refused(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.netns.ip("link", "set", "eth0", "netns", shaped.netns.peer, "name", "moved0")
    assert [answer for _, answer in shaped.apply(rate(500 * MBIT)).results] == [Gone()]
    assert not shaped.kernel.revert().refused()


def test_a_link_that_flaps_while_it_changes_ends_as_it_should(shaped: Shaped) -> None:
    before = shaped.picture()
    shaped.done(rate(1000 * MBIT))

    def flap() -> None:
        for _ in range(FLAPS):
            for way in ("down", "up"):
                shaped.netns.ip("link", "set", "eth0", way)

    flapping = threading.Thread(target=flap)
    flapping.start()
    for n in range(FLAPS):
        shaped.apply(rate((900 - n) * MBIT), value(API, "floor", (100 + n) * MBIT))
    flapping.join()
    shaped.done(rate(800 * MBIT), value(API, "floor", 50 * MBIT))
    held = [shaped.kernel.settings[s] for s in (RATE, Setting(API, "net.egress.floor", "eth0"))]
    assert held == [800 * MBIT, 50 * MBIT]
    shaped.netns.ip("route", "replace", "default", "via", "192.0.2.2")
    shaped.send(shaped.places[API], count=10)
    assert shaped.counted(API).sent // PACKET == 10
    assert not shaped.kernel.revert().refused()
    assert shaped.picture() == before


def test_a_filter_that_somebody_takes_away_is_noticed_and_put_there_again(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.netns.run("tc", "filter", "del", "dev", "eth0", "parent", "10ce:")
    assert RATE in {drift.setting for drift in shaped.kernel.read_now([ETH0])}
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.send(shaped.places[API], count=10)
    assert shaped.counted(API).sent // PACKET == 10


def test_a_bridge_is_divided_as_any_link_is_and_its_ports_are_left_alone(shaped: Shaped) -> None:
    net = shaped.netns
    net.ip("link", "add", "br0", "type", "bridge")
    net.ip("addr", "flush", "dev", "eth0")
    net.ip("link", "set", "eth0", "master", "br0")
    net.ip("addr", "add", "192.0.2.1/24", "dev", "br0")
    net.ip("link", "set", "br0", "up")
    bridge, ceiling = Setting(link("br0"), "link.egress.rate"), Setting(API, "net.egress.ceil", "br0")
    before = net.run("tc", "qdisc", "show")
    shaped.done(*(ValueChange(s, None, v, "test", "") for s, v in ((bridge, 1000 * MBIT), (ceiling, 500 * MBIT))))
    assert "dev eth0 root" not in net.run("tc", "qdisc", "show").replace("qdisc noqueue 0: dev eth0 root", "")
    shaped.send(shaped.places[API], count=10)
    assert shaped.counted(API, on="br0").sent // PACKET == 10
    assert not shaped.kernel.revert().refused()
    assert net.run("tc", "qdisc", "show") == before


def test_what_leaves_by_ipv6_is_in_the_class_of_who_sent_it(shaped: Shaped) -> None:
    for address, at in (("fd00:c0de::1/64", shaped.netns.name), ("fd00:c0de::2/64", shaped.netns.peer)):
        shaped.netns.ip("addr", "add", address, "dev", "eth0", "nodad", at=at)
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    with shaped.started(shaped.places[API], SEND6) as sender:
        sender.communicate()
    assert shaped.counted(API).packets == 10


@pytest.mark.parametrize("right", ["net_admin", "sys_admin"])
def test_a_right_that_is_missing_is_named(shaped: Shaped, right: str) -> None:
    asked = "from j10ce.host.mounts import Hierarchies; from j10ce.kernel.net import probe;"
    asked += "print(probe.support(Hierarchies.discover())['egress'].needs)"
    without = ("setpriv", f"--bounding-set=-{right}", f"--inh-caps=-{right}", sys.executable, "-c", asked)
    named = shaped.netns.run(*without)
    assert named == f"the capabilities {right.upper()}\n"
