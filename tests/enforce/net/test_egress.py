"""What leaves by a link is in the class of whoever sent it, and all is as it was once that ends."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest

from j10ce.control.network.levels import COMMON
from j10ce.host.net import netlink, queues
from j10ce.kernel.net import htb, probation, traffic
from j10ce.model.knob import Setting, share
from j10ce.model.machine.link import OPEN
from j10ce.model.plan import Gone, Make, Remove
from tests.enforce.net.shaping import API, ETH0, MBIT, RATE, SYNC, Shaped, rate, take_over, value

TEAM = share("default", "team")
PACKET = 1042  # a thousand bytes, with headers


def test_packets_are_in_the_class_of_the_cgroup_that_sent_them(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "ceil", 500 * MBIT))
    shaped.send(shaped.places[API], count=100)
    shaped.send(shaped.places[SYNC], count=30)
    shaped.send(None, count=7)
    assert [shaped.counted(who).sent // PACKET for who in (API, SYNC, htb.OTHERS)] == [100, 30, 7]


def test_a_cgroup_below_a_workloads_is_the_workloads(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.send(shaped.work.make("api", "inner"), count=10)
    assert shaped.counted(API).sent // PACKET == 10


def test_neighbours_are_asked_for_before_anything_else(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    shaped.send(None, count=1)
    assert shaped.counted(htb.SYSTEM).packets > 0


def test_whoever_sends_to_port_22_comes_before_nobody_with_more_than_is_kept_for_it(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT))
    shown = shaped.netns.run("tc", "class", "show", "dev", "eth0", "classid", f"10ce:{htb.SYSTEM}")
    assert f"prio {COMMON} rate 5Mbit" in shown


@pytest.mark.parametrize(
    ("said", "held"),
    [(64_000.0, 64_000.0), (100e9, 100e9), (50 * MBIT + 7, 50 * MBIT), (math.inf, math.inf)],
    ids=["slow", "fast", "rounded", "unlimited"],
)
def test_rates_from_slow_to_fast_are_held_as_they_were_said(shaped: Shaped, said: float, held: float) -> None:
    shaped.done(rate(400e9), value(API, "priority", 1.0), value(API, "ceil", said))
    assert shaped.kernel.settings[Setting(API, "net.egress.ceil", "eth0")] == held
    shaped.start()
    assert shaped.kernel.settings[Setting(API, "net.egress.ceil", "eth0")] == held


def test_whoever_has_no_floor_is_promised_next_to_nothing(shaped: Shaped) -> None:
    """HTB sends what classes have for certain whatever the link carries: with 8 kbit/s each, 60 took 40 % too much."""
    many = shaped.admitted(f"be{n}" for n in range(60))
    shaped.done(rate(10 * MBIT), value(API, "floor", 9.5 * MBIT), *(value(who, "ceil", MBIT) for who in many))
    index = shaped.trees.index("eth0") or 0
    every = [c for q in queues.classes(shaped.trees.netlink, index) if (c := queues.htb_class(q)) and c.parent]
    assert sum(c.rate for c in every if c.parent & 0xFFFF == htb.WHOLE) * 8 <= 10 * MBIT


def test_a_floor_of_nothing_is_nothing_and_whoever_has_no_values_has_no_class(shaped: Shaped) -> None:
    before = shaped.picture()
    shaped.done(rate(100 * MBIT))
    classes = shaped.netns.run("tc", "class", "show", "dev", "eth0")
    shaped.done(value(API, "floor", MBIT), value(API, "priority", 0.0))
    assert shaped.netns.run("tc", "class", "show", "dev", "eth0") != classes
    shaped.done(value(API, "floor", 0.0), value(API, "priority", 4.0))
    assert shaped.netns.run("tc", "class", "show", "dev", "eth0") == classes
    shaped.done(rate(math.inf))
    assert shaped.picture() == before


@pytest.mark.parametrize("again", [False, True], ids=["said now", "after a restart"])
def test_where_nothing_is_divided_whoever_has_no_ceiling_passes_by_all_classes(shaped: Shaped, again: bool) -> None:
    def passed_by() -> int:
        counter = re.search(r"direct_packets_stat (\d+)", shaped.netns.run("tc", "-d", "qdisc", "show", "dev", "eth0"))
        return int(counter[1]) if counter else -1

    shaped.done(rate(OPEN), value(SYNC, "ceil", 500 * MBIT))
    if again:
        shaped.start()
    shaped.send(shaped.places[SYNC], count=30)
    shaped.send(shaped.places[API], count=100)
    assert shaped.counted(SYNC).sent // PACKET == 30
    assert passed_by() >= 100
    shaped.done(rate(1000 * MBIT))
    before = passed_by()
    shaped.send(shaped.places[API], count=50)
    assert (shaped.counted(htb.OTHERS).sent // PACKET, passed_by()) == (50, before)
    shaped.done(rate(OPEN))
    shaped.send(shaped.places[API], count=20)
    assert shaped.counted(SYNC).sent // PACKET == 30
    assert passed_by() >= before + 20, "with what the machine itself asks its neighbours"


def test_a_share_limits_its_members_together_and_goes_when_it_is_empty(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), Make(TEAM, "default/team", ""), value(TEAM, "ceil", 10 * MBIT))
    shaped.done(value(API, "share", TEAM), value(SYNC, "share", TEAM), value(SYNC, "floor", MBIT))
    shaped.send(shaped.places[API], count=20)
    shaped.send(shaped.places[SYNC], count=5)
    assert shaped.counted(TEAM).sent // PACKET == 25
    assert shaped.kernel.settings[Setting(API, "net.share", "eth0")] == TEAM
    assert shaped.apply(Remove(TEAM, "")).refused()
    shaped.done(value(API, "share", ""), value(SYNC, "share", ""), Remove(TEAM, ""))
    shaped.send(shaped.places[SYNC], count=3)
    assert shaped.counted(SYNC).sent // PACKET == 3


def test_whoever_starts_again_finds_what_was_there(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(API, "priority", 1.0))
    held, seen = dict(shaped.kernel.settings), shaped.picture()
    shaped.start()
    assert {s: shaped.kernel.settings[s] for s in held} == held
    shaped.send(shaped.places[API], count=4)
    assert (shaped.counted(API).sent // PACKET, shaped.picture()) == (4, seen)


def test_revert_leaves_what_was_there_before(shaped: Shaped) -> None:
    before = shaped.picture()
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "ceil", 5 * MBIT))
    shaped.start()
    assert not shaped.kernel.revert().refused()
    assert shaped.picture() == before


def test_a_link_with_another_name_is_given_back_all_the_same(shaped: Shaped) -> None:
    before = shaped.picture()
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    for words in (("down",), ("name", "lan0"), ("up",)):
        shaped.netns.ip("link", "set", "eth0" if words != ("up",) else "lan0", *words)
    shaped.start()
    shaped.kernel.revert()
    shaped.netns.ip("link", "set", "lan0", "down")
    shaped.netns.ip("link", "set", "lan0", "name", "eth0")
    shaped.netns.ip("link", "set", "eth0", "up")
    assert shaped.picture() == before


def test_a_link_that_goes_away_is_gone_and_nothing_is_refused(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.netns.ip("link", "del", "eth0")
    results = [r for _, r in shaped.apply(rate(500 * MBIT)).results]
    assert results == [Gone()]
    assert not shaped.kernel.revert().refused()


def test_a_cgroup_made_again_under_the_same_name_has_no_class_until_it_is_given_one(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    at = shaped.places[API]
    for mount in shaped.work.hierarchies.in_use().values():
        (Path(mount.path) / at.path).rmdir()
    shaped.places[API] = shaped.work.make("api")
    shaped.start()
    assert shaped.kernel.settings[Setting(API, "net.egress.floor", "eth0")] == 0.0
    shaped.done(value(API, "floor", 100 * MBIT))
    shaped.send(shaped.places[API], count=6)
    assert shaped.counted(API).sent // PACKET == 6


def test_classes_of_cgroups_that_are_gone_go(shaped: Shaped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "ENOUGH", 1)
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "floor", 100 * MBIT))
    at = shaped.places.pop(API)
    for mount in shaped.work.hierarchies.in_use().values():
        (Path(mount.path) / at.path).rmdir()
    late = shaped.admit("late")
    shaped.done(value(late, "floor", 10 * MBIT))
    tree = shaped.trees.of(shaped.trees.index("eth0") or 0)
    assert tree is not None
    assert set(tree.branches) == {SYNC, late}


def test_traffic_without_queueing_on_the_link_is_refused_with_what_comes_first(shaped: Shaped) -> None:
    ((_, refused),) = shaped.apply(value(API, "floor", MBIT)).refused()
    assert "net.egress.floor[eth0]" in refused.reason


THEIRS = (
    ("qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "20"),
    ("class", "add", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb", "rate", "100mbit"),
    ("class", "add", "dev", "eth0", "parent", "1:1", "classid", "1:10", "htb", "rate", "60mbit", "ceil", "100mbit"),
    ("class", "add", "dev", "eth0", "parent", "1:1", "classid", "1:20", "htb", "rate", "40mbit", "prio", "3"),
    ("qdisc", "add", "dev", "eth0", "parent", "1:10", "handle", "10:", "tbf", "rate", "9mbit", "burst", "9k",
     "latency", "9ms"),
    ("filter", "add", "dev", "eth0", "parent", "1:", "prio", "5", "protocol", "ip", "u32", "match", "ip", "dport", "80",
     "0xffff", "flowid", "1:10"),
)  # fmt: skip


def test_what_others_have_set_up_is_left_alone_and_named(shaped: Shaped) -> None:
    for words in THEIRS:
        shaped.netns.run("tc", *words)
    before = shaped.picture()
    ((_, refused),) = shaped.apply(rate(1000 * MBIT)).refused()
    assert "qdisc htb 1:" in refused.reason
    assert "takeOver" in refused.reason
    assert shaped.picture() == before


def test_what_is_taken_over_comes_back_as_it_was(shaped: Shaped) -> None:
    for words in THEIRS:
        shaped.netns.run("tc", *words)
    before = shaped.picture()
    shaped.done(take_over(), rate(1000 * MBIT), value(API, "floor", 10 * MBIT))
    assert "10ce:" in shaped.picture()
    shaped.start()
    assert not shaped.kernel.revert().refused()
    assert shaped.picture() == before


@pytest.mark.parametrize("agent", ["there", "gone"])
def test_thousands_of_classes_that_were_taken_over_come_back(
    shaped: Shaped, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a message may carry, and more answers than are kept where nobody raised net.core.rmem_max."""
    monkeypatch.setattr(netlink, "_KEPT", 212_992)
    shaped.start()
    words = [f"class add dev eth0 parent 1: classid 1:{n:x} htb rate 1mbit ceil 2mbit" for n in range(16, 2816)]
    batch = "\n".join(["qdisc add dev eth0 root handle 1: htb default 10", *words])
    inside = ("nsenter", f"--net=/run/netns/{shaped.netns.name}", "tc", "-batch", "-")
    subprocess.run(inside, input=batch, text=True, check=True)
    before = shaped.picture()
    shaped.done(take_over(), rate(1000 * MBIT))
    assert "10ce:" in shaped.picture()
    if agent == "there":
        assert not shaped.kernel.revert().refused()
    else:
        shaped.netns.ip("link", "set", "eth0", "down", at=shaped.netns.peer)
        with shaped.netns.inside():
            index = shaped.trees.index("eth0")
            trial = probation.start(index or 0, "egress", shaped.trials[-1].before, 0.5)
        assert trial.wait(60) == probation.WENT_BACK
    assert shaped.picture() == before


def test_what_somebody_replaces_is_theirs_and_noticed(shaped: Shaped) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.netns.run(
        "tc",
        "qdisc",
        "replace",
        "dev",
        "eth0",
        "root",
        "handle",
        "7:",
        "tbf",
        "rate",
        "1gbit",
        "burst",
        "99k",
        "latency",
        "9ms",
    )
    drifts = shaped.kernel.read_now([ETH0])
    assert [(d.setting, d.theirs) for d in drifts] == [(RATE, math.inf)]
    assert shaped.apply(rate(1000 * MBIT)).refused()
    assert "tbf 7:" in shaped.picture()


def test_programs_of_others_at_the_same_link_stay(shaped: Shaped) -> None:
    shaped.netns.run("tc", "qdisc", "add", "dev", "eth0", "clsact")
    shaped.netns.run(
        "tc",
        "filter",
        "add",
        "dev",
        "eth0",
        "egress",
        "prio",
        "1",
        "protocol",
        "ip",
        "u32",
        "match",
        "u32",
        "0",
        "0",
        "flowid",
        "1:1",
    )
    before = shaped.netns.run("tc", "filter", "show", "dev", "eth0", "egress")
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    shaped.kernel.revert()
    assert shaped.netns.run("tc", "filter", "show", "dev", "eth0", "egress") == before
    assert "clsact" in shaped.picture()
