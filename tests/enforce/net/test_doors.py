"""What comes out of a network of a workload's own is in that workload's class, by whatever way it leaves."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from j10ce.host.net.ends import FarEnds
from j10ce.host.net.links import LinkTable
from j10ce.kernel.net import htb
from j10ce.kernel.net.ingress import queue_of
from j10ce.model.knob import Setting, TargetId, Value, link
from j10ce.model.plan import ValueChange
from tests.enforce.net.shaping import API, MBIT, SYNC, Shaped, rate, value
from tests.netns import Netns, ip

PODS: Final = {API: "198.51.100.2", SYNC: "198.51.100.3"}
PODS6: Final = {API: "fd00:90d::2", SYNC: "fd00:90d::3"}
DOORS: Final = {API: "vethapi", SYNC: "vethsync"}
GATEWAY, GATEWAY6 = "198.51.100.1", "fd00:90d::1"
AWAY, AWAY6 = "203.0.113.9", "fd00:a::9"
SEND: Final = """
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
for _ in range({count}):
    s.sendto(bytes(1000), ({there!r}, 9))
"""
MASQUERADE: Final = """
table ip pods {
    chain after {
        type nat hook postrouting priority 100
        ip saddr 198.51.100.0/24 oifname eth0 masquerade
    }
}
"""
SERVE: Final = """
import socket
s = socket.create_server(({here!r}, 8080), family=socket.{family})
print("ready", flush=True)
c = s.accept()[0]
c.sendall(bytes({size}))
c.shutdown(socket.SHUT_WR)
c.recv(1)
"""
FETCH: Final = """
import socket
with socket.create_connection(({there!r}, 8080)) as c:
    while c.recv(65536):
        pass
"""
TAKE: Final = """
import socket
s = socket.create_server(("198.51.100.2", 8080))
print("ready", flush=True)
c = s.accept()[0]
while c.recv(65536):
    pass
"""
GIVE: Final = """
import socket
with socket.create_connection(("198.51.100.2", 8080)) as c:
    c.sendall(bytes(1_000_000))
    c.shutdown(socket.SHUT_WR)
    c.recv(1)
"""
SIZE: Final = 1_000_000
TBF: Final = "qdisc add dev {} root tbf rate 20mbit burst 64kb latency 25ms"
Way = Callable[[Netns], None]


class Pods:
    """Two pods of one machine, each with a network of its own."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped, self.netns = shaped, shaped.netns
        self.names = {who: f"{shaped.netns.name}-{door}" for who, door in DOORS.items()}

    def build(self) -> None:
        net = self.netns
        for who, name in self.names.items():
            assert not ip("netns", "add", name)
            net.ip("link", "add", DOORS[who], "type", "veth", "peer", "name", "eth0", "netns", name)
            net.ip("link", "set", DOORS[who], "up")
            net.ip("link", "set", "eth0", "up", at=name)
            net.ip("addr", "add", f"{PODS[who]}/24", "dev", "eth0", at=name)
            net.ip("addr", "add", f"{PODS6[who]}/64", "dev", "eth0", "nodad", at=name)
            net.ip("route", "add", "default", "via", GATEWAY, at=name)
            net.ip("route", "add", "default", "via", GATEWAY6, at=name)
        net.run("sh", "-c", "echo 1 | tee /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding")
        net.ip("addr", "add", "fd00:c0de::1/64", "dev", "eth0", "nodad")
        net.ip("addr", "add", "fd00:c0de::2/64", "dev", "eth0", "nodad", at=net.peer)
        net.ip("route", "add", AWAY6, "via", "fd00:c0de::2")

    def acquaint(self) -> None:
        """Nobody has to ask for a neighbour: what is sent leaves at once."""
        away = self._mac("eth0", self.netns.peer)
        for address in ("192.0.2.2", "fd00:c0de::2"):
            self.netns.ip("neigh", "replace", address, "lladdr", away, "dev", "eth0")
        for who, name in self.names.items():
            bridge = self._has("cni0")
            here = self._mac("cni0" if bridge else DOORS[who])
            if not bridge:
                self.netns.ip("neigh", "replace", PODS[who], "lladdr", self._mac("eth0", name), "dev", DOORS[who])
            others = () if bridge else (PODS[other] for other in PODS if other != who)
            for address in (GATEWAY, GATEWAY6, *others):
                self.netns.ip("neigh", "replace", address, "lladdr", here, "dev", "eth0", at=name)

    def _has(self, link: str) -> bool:
        return link in self.netns.run("ip", "link", "show")

    def _mac(self, link: str, at: str = "") -> str:
        return str(json.loads(self.netns.run("ip", "-j", "link", "show", link, at=at))[0]["address"])

    def clear(self) -> None:
        for name in self.names.values():
            ip("netns", "del", name)

    def send(self, who: TargetId, count: int, there: str = AWAY) -> None:
        """All of it has been taken by the machine when this returns."""
        code = SEND.format(family="AF_INET6" if ":" in there else "AF_INET", count=count, there=there)
        self.netns.run(sys.executable, "-I", "-S", "-c", code, at=self.names[who])

    def served(self, at: str, code: str) -> subprocess.Popen[str]:
        """Somebody who is ready."""
        inside = ("nsenter", f"--net=/run/netns/{at}", sys.executable, "-I", "-S", "-c", code)
        server = subprocess.Popen(inside, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        return server

    def fetch(self, by: str, at: str, here: str) -> None:
        """A million bytes that somebody at `at` serves at `here`."""
        with self.served(at, SERVE.format(here=here, family="AF_INET6" if ":" in here else "AF_INET", size=SIZE)):
            self.netns.run(sys.executable, "-I", "-S", "-c", FETCH.format(there=here), at=by)

    def index(self, name: str) -> int:
        known = self.shaped.trees.index(name)
        assert known is not None
        return known

    def passed(self, name: str) -> int:
        """Packets with what pods send here, through the tree on a link."""
        shown = self.netns.run("tc", "-s", "class", "show", "dev", name, "classid", f"10ce:{htb.OTHERS}")
        return int(shown.split(" pkt")[0].rpartition(" ")[2])

    def picture(self) -> str:
        doors = [
            f"{what} show dev {d} {more}"
            for d in DOORS.values()
            for what, more in (("qdisc", ""), ("filter", "ingress"))
        ]
        return self.shaped.picture() + "".join(self.netns.run("tc", *words.split()) for words in doors)


def routed(net: Netns) -> None:
    """A route for each pod, as most CNIs set them up."""
    for who, door in DOORS.items():
        for address, gateway in ((PODS[who], GATEWAY), (PODS6[who], GATEWAY6)):
            net.ip("addr", "add", gateway, "dev", door, *(("nodad",) if ":" in gateway else ()))
            net.ip("route", "add", address, "dev", door)


def bridged(net: Netns) -> None:
    net.ip("link", "add", "cni0", "type", "bridge")
    net.ip("link", "set", "cni0", "up")
    net.ip("addr", "add", f"{GATEWAY}/24", "dev", "cni0")
    net.ip("addr", "add", f"{GATEWAY6}/64", "dev", "cni0", "nodad")
    for door in DOORS.values():
        net.ip("link", "set", door, "master", "cni0")


def tunnelled(net: Netns) -> None:
    bridged(net)
    net.ip("link", "add", "vx0", "type", "vxlan", "id", "7", "remote", "192.0.2.2", "dstport", "4789", "dev", "eth0")
    net.ip("link", "set", "vx0", "up")
    net.ip("route", "add", AWAY, "dev", "vx0")
    net.ip("neigh", "add", AWAY, "lladdr", "02:00:00:00:00:09", "dev", "vx0")


def masqueraded(net: Netns) -> None:
    """The address of a pod is gone by the time that a packet waits for the link."""
    if shutil.which("nft") is None:
        pytest.skip("Unsupported: translation of addresses (no nft)")
    bridged(net)
    inside = ("nsenter", f"--net=/run/netns/{net.name}", "nft", "-f", "-")
    subprocess.run(inside, input=MASQUERADE, text=True, check=True)


def door(who: TargetId, name: Value) -> ValueChange:
    return ValueChange(Setting(who, "net.door", "eth0"), None, name, "test", "")


@pytest.fixture
def pods(shaped: Shaped) -> Iterator[Pods]:
    pods = Pods(shaped)
    try:
        pods.build()
        yield pods
    finally:
        pods.clear()


def divided(pods: Pods) -> None:
    pods.acquaint()
    pods.shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "ceil", 500 * MBIT))
    pods.shaped.done(*(door(who, name) for who, name in DOORS.items()))


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


def at_door(who: TargetId, way: str, new: float) -> ValueChange:
    return ValueChange(Setting(link(DOORS[who]), f"link.{way}.rate"), None, new, "test", "")


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


@pytest.fixture
def both_ways(pods: Pods) -> Pods:
    """What comes in is divided, too, and the peer knows where pods are."""
    if needs := pods.shaped.support["ingress"].needs:
        pytest.skip(f"Unsupported: what comes in needs {needs}")
    pods.netns.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.1", at=pods.netns.peer)
    pods.netns.ip("route", "add", "fd00:90d::/64", "via", "fd00:c0de::1", at=pods.netns.peer)
    return pods


def divide_both(pods: Pods) -> None:
    divided(pods)
    floors = (value(who, "floor", 100 * MBIT, "ingress") for who in (API, SYNC))
    pods.shaped.done(rate(1000 * MBIT, "ingress"), *floors, *(door(who, name) for who, name in DOORS.items()))


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
