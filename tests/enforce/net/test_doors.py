"""What comes out of a network of a workload's own is in that workload's class, by whatever way it leaves."""

from __future__ import annotations

import math
import sys

import pytest

from j10ce.host.net.ends import FarEnds
from j10ce.host.net.links import LinkTable
from j10ce.kernel.net import htb
from j10ce.kernel.net.ingress import queue_of
from j10ce.model.knob import Setting, link
from tests.enforce.net.pods import (
    AWAY,
    AWAY6,
    DOORS,
    GIVE,
    PODS,
    PODS6,
    SIZE,
    TAKE,
    TBF,
    Pods,
    Way,
    at_door,
    bridged,
    divide_both,
    divided,
    door,
    masqueraded,
    routed,
    tunnelled,
)
from tests.enforce.net.shaping import API, MBIT, SYNC, rate, value


@pytest.mark.parametrize("there", [AWAY, AWAY6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("way", [routed, bridged, masqueraded, tunnelled])
def test_packets_of_a_pod_are_in_its_class_however_they_leave(pods: Pods, way: Way, there: str) -> None:
    way(pods.netns)
    divided(pods)
    pods.send(API, 100, there)
    pods.send(SYNC, 30, there)
    assert [pods.shaped.counted(who).packets for who in (API, SYNC)] == [100, 30]


def test_a_door_that_leads_nowhere_any_more_leads_to_nobodys_class(pods: Pods) -> None:
    bridged(pods.netns)
    divided(pods)
    pods.shaped.done(door(API, ""))
    pods.send(API, 20)
    pods.send(SYNC, 30)
    assert [pods.shaped.counted(who).packets for who in (API, SYNC)] == [0, 30]
    assert pods.shaped.counted(htb.OTHERS).packets >= 20


def test_revert_leaves_doors_as_they_were(pods: Pods) -> None:
    bridged(pods.netns)
    before = pods.picture()
    divided(pods)
    assert pods.picture() != before
    pods.shaped.start()
    assert not pods.shaped.kernel.revert().refused()
    assert pods.picture() == before


def test_whoever_starts_again_finds_the_doors(pods: Pods) -> None:
    bridged(pods.netns)
    divided(pods)
    held, seen = dict(pods.shaped.kernel.settings), pods.picture()
    pods.shaped.start()
    assert {s: pods.shaped.kernel.settings[s] for s in held} == held
    pods.send(API, 4)
    assert (pods.shaped.counted(API).packets, pods.picture()) == (4, seen)


@pytest.mark.parametrize("hook", ["ingress", "clsact"])
def test_programs_of_others_at_a_door_stay_and_see_every_packet(pods: Pods, hook: str) -> None:
    bridged(pods.netns)
    net, at = pods.netns, DOORS[API]
    net.run("tc", "qdisc", "add", "dev", at, hook)
    match = ("u32", "match", "ip", "protocol", "17", "0xff", "action", "mirred", "egress", "mirror", "dev", "lo")
    net.run("tc", "filter", "add", "dev", at, "ingress", "protocol", "ip", *match)
    before = pods.picture()
    divided(pods)
    pods.send(API, 40)
    assert pods.shaped.counted(API).packets == 40
    assert "Sent 0 bytes" not in net.run("tc", "-s", "filter", "show", "dev", at, "ingress")
    pods.shaped.kernel.revert()
    assert pods.picture() == before


def test_a_door_that_somebody_cleared_is_seen_to_be_none(pods: Pods) -> None:
    bridged(pods.netns)
    divided(pods)
    pods.netns.run("tc", "qdisc", "del", "dev", DOORS[API], "clsact")
    pods.shaped.kernel.read_now([API])
    assert pods.shaped.kernel.settings[Setting(API, "net.door", "eth0")] == ""
    pods.shaped.done(door(API, DOORS[API]))
    pods.send(API, 5)
    assert pods.shaped.counted(API).packets == 5


def test_a_door_that_went_with_its_pod_is_none_and_a_new_one_takes_its_place(pods: Pods) -> None:
    bridged(pods.netns)
    divided(pods)
    pods.netns.ip("link", "del", DOORS[API])
    pods.shaped.kernel.read_now([API])
    assert pods.shaped.kernel.settings[Setting(API, "net.door", "eth0")] == ""
    assert pods.shaped.apply(door(API, DOORS[API])).refused()


def test_whoever_is_at_the_other_end_is_known_by_his_addresses(pods: Pods) -> None:
    with pods.netns.inside():
        table = LinkTable(FarEnds())
    assert {table.now()[name].beyond for name in DOORS.values()} == {(PODS[who], PODS6[who]) for who in DOORS}
    pods.netns.ip("addr", "add", "198.51.100.77/24", "dev", "eth0", at=pods.netns.peer)
    assert table.now()["eth0"].beyond[0] == "192.0.2.2"


def test_an_address_that_comes_late_is_seen_though_nobody_here_is_told(pods: Pods) -> None:
    pods.netns.ip("addr", "flush", "dev", "eth0", "scope", "global", at=pods.names[API])
    with pods.netns.inside():
        table = LinkTable(FarEnds())
    assert table.now()[DOORS[API]].beyond == ()
    pods.netns.ip("addr", "add", "198.51.100.9/24", "dev", "eth0", at=pods.names[API])
    assert table.now()[DOORS[API]].beyond == ("198.51.100.9",)


@pytest.mark.parametrize("way", [routed, bridged])
def test_ceilings_at_a_door_hold_towards_another_pod_of_the_same_machine(both_ways: Pods, way: Way) -> None:
    """What is sent through the door of one, and what comes through that of the other, is queued for."""
    way(both_ways.netns)
    divided(both_ways)
    before = both_ways.picture()
    both_ways.shaped.done(at_door(API, "ingress", 800 * MBIT), at_door(SYNC, "egress", 400 * MBIT))
    assert not both_ways.shaped.trials[1:], "nobody reaches this machine by a door: its tree is not on probation"
    both_ways.send(API, 50, PODS[SYNC])
    assert min(both_ways.passed(DOORS[SYNC]), both_ways.passed(queue_of(both_ways.index(DOORS[API])))) >= 50
    both_ways.send(API, 20)
    assert both_ways.shaped.counted(API).packets == 20, "a pod that is queued for at its door has its class at the link"
    both_ways.shaped.start()
    assert both_ways.shaped.kernel.settings[Setting(link(DOORS[SYNC]), "link.egress.rate")] == 400 * MBIT
    both_ways.shaped.done(at_door(API, "ingress", math.inf), at_door(SYNC, "egress", math.inf))
    assert both_ways.picture() == before


@pytest.mark.parametrize("first", ["door", "ceiling"])
def test_a_door_with_a_ceiling_is_given_back_as_it_was(both_ways: Pods, first: str) -> None:
    bridged(both_ways.netns)
    both_ways.acquaint()
    before = both_ways.picture()
    both_ways.shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    said = [at_door(API, "ingress", 800 * MBIT), door(API, DOORS[API])]
    for change in said if first == "ceiling" else reversed(said):
        both_ways.shaped.done(change)
    both_ways.shaped.done(at_door(API, "ingress", math.inf))
    both_ways.send(API, 10)
    assert both_ways.shaped.counted(API).packets == 10
    both_ways.shaped.start()
    assert not both_ways.shaped.kernel.revert().refused()
    assert both_ways.picture() == before


def test_a_pod_that_a_cni_limits_at_its_door_keeps_those_limits(both_ways: Pods) -> None:
    """As Kubernetes' bandwidth plugin does: what is queued for by somebody else stays, and is named."""
    bridged(both_ways.netns)
    both_ways.netns.run("tc", *TBF.format(DOORS[SYNC]).split())
    before = both_ways.picture()
    refused = both_ways.shaped.apply(at_door(SYNC, "egress", 400 * MBIT)).refused()
    assert "qdisc tbf" in str(refused)
    assert both_ways.picture() == before


def test_the_queue_of_a_door_goes_with_its_pod(both_ways: Pods) -> None:
    bridged(both_ways.netns)
    both_ways.shaped.done(at_door(API, "ingress", 800 * MBIT), at_door(API, "egress", 400 * MBIT))
    queue = queue_of(both_ways.index(DOORS[API]))
    assert queue in both_ways.netns.run("ip", "link", "show")
    both_ways.netns.ip("link", "del", DOORS[API])
    both_ways.shaped.trees.every()
    assert queue not in both_ways.netns.run("ip", "link", "show")


@pytest.mark.parametrize("there", ["192.0.2.2", "fd00:c0de::2"], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("way", [routed, bridged, masqueraded])
def test_what_a_pod_fetches_comes_in_by_its_class_whatever_its_address_became(
    both_ways: Pods, way: Way, there: str
) -> None:
    way(both_ways.netns)
    divide_both(both_ways)
    both_ways.fetch(both_ways.names[API], both_ways.netns.peer, there)
    assert both_ways.shaped.counted(API, "ingress").sent >= SIZE
    assert both_ways.shaped.counted(SYNC, "ingress").sent == 0


def test_what_is_sent_to_a_pod_that_answers_comes_in_by_its_class(both_ways: Pods) -> None:
    routed(both_ways.netns)
    divide_both(both_ways)
    with both_ways.served(both_ways.names[API], TAKE):
        both_ways.netns.run(sys.executable, "-I", "-S", "-c", GIVE, at=both_ways.netns.peer)
    assert both_ways.shaped.counted(API, "ingress").sent >= 0.9 * SIZE


def test_whoever_starts_again_goes_on_knowing_what_comes_back(both_ways: Pods) -> None:
    bridged(both_ways.netns)
    before = both_ways.picture()
    divide_both(both_ways)
    held, seen = dict(both_ways.shaped.kernel.settings), both_ways.picture()
    both_ways.shaped.start()
    assert {s: both_ways.shaped.kernel.settings[s] for s in held} == held
    assert both_ways.picture() == seen
    both_ways.fetch(both_ways.names[API], both_ways.netns.peer, "192.0.2.2")
    assert both_ways.shaped.counted(API, "ingress").sent >= SIZE
    assert not both_ways.shaped.kernel.revert().refused()
    assert both_ways.picture() == before


def test_a_class_that_begins_to_wait_for_what_comes_in_is_seen_to_lack_its_door_there(both_ways: Pods) -> None:
    bridged(both_ways.netns)
    divided(both_ways)
    both_ways.shaped.done(rate(1000 * MBIT, "ingress"))
    both_ways.shaped.kernel.read_now([API])
    assert both_ways.shaped.kernel.settings[Setting(API, "net.door", "eth0")] == ""


def test_a_door_with_the_stamp_of_another_is_refused_and_takes_no_packets_from_it(pods: Pods) -> None:
    """Numbers of links go on rising: after 32,768 more there is one that is stamped alike."""
    bridged(pods.netns)
    divided(pods)
    alike = str(pods.index(DOORS[API]) + 0x8000)
    pods.netns.ip("link", "add", "vethlate", "index", alike, "type", "veth", "peer", "name", "vethend")
    ((_, refused),) = pods.shaped.apply(door(SYNC, "vethlate")).refused()
    assert DOORS[API] in refused.reason
    pods.send(API, 100)
    assert pods.shaped.counted(API).packets == 100
