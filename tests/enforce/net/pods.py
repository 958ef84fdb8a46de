"""Pods of one machine, each with a network of its own, and the ways in which CNIs join them to it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import pytest

from j10ce.kernel.net import htb
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


def divided(pods: Pods) -> None:
    pods.acquaint()
    pods.shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "ceil", 500 * MBIT))
    pods.shaped.done(*(door(who, name) for who, name in DOORS.items()))


def at_door(who: TargetId, way: str, new: float) -> ValueChange:
    return ValueChange(Setting(link(DOORS[who]), f"link.{way}.rate"), None, new, "test", "")


def divide_both(pods: Pods) -> None:
    divided(pods)
    floors = (value(who, "floor", 100 * MBIT, "ingress") for who in (API, SYNC))
    pods.shaped.done(rate(1000 * MBIT, "ingress"), *floors, *(door(who, name) for who, name in DOORS.items()))
