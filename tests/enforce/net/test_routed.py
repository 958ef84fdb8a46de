"""What comes in and is not for this machine arrives where it is for, whoever listens here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from j10ce.kernel.net import htb
from j10ce.model.knob import TargetId
from tests.enforce.net.shaping import API, MBIT, Shaped, rate, value
from tests.netns import Netns, ip

POD = "198.51.100.2"
LISTEN = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9))
print("ready", flush=True)
print(s.recv(100).decode())
"""
SEND = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"hello", ({there!r}, 9))
"""
SERVE = """
import socket
s = socket.create_server(({here!r}, {port}), family=socket.{family})
print("ready", flush=True)
with s.accept()[0] as c:
    while c.recv(65536):
        pass
"""
UPLOAD = """
import socket
with socket.create_connection(({there!r}, {port})) as c:
    c.sendall(bytes({size}))
    c.shutdown(socket.SHUT_WR)
    c.recv(1)
"""
SIZE = 100_000


@pytest.fixture
def router(shaped: Shaped) -> Iterator[Shaped]:
    """The machine also routes to a pod in a namespace of its own."""
    if needs := shaped.support["ingress"].needs:
        pytest.skip(f"Unsupported: what comes in needs {needs}")
    net, pod = shaped.netns, f"{shaped.netns.name}-pod"
    assert not ip("netns", "add", pod)
    try:
        net.ip("link", "add", "pod0", "type", "veth", "peer", "name", "eth0", "netns", pod)
        net.ip("addr", "add", "198.51.100.1/24", "dev", "pod0")
        net.ip("link", "set", "pod0", "up")
        net.ip("addr", "add", f"{POD}/24", "dev", "eth0", at=pod)
        net.ip("link", "set", "eth0", "up", at=pod)
        net.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.1", at=net.peer)
        net.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        yield shaped
    finally:
        ip("netns", "del", pod)


def listening(at: str) -> subprocess.Popen[str]:
    command = ("nsenter", f"--net=/run/netns/{at}", sys.executable, "-I", "-S", "-c", LISTEN)
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def upload(net: Netns, there: str, port: int) -> None:
    code = UPLOAD.format(there=there, port=port, size=SIZE)
    net.run(sys.executable, "-I", "-S", "-c", code, at=net.peer)


def test_whoever_listens_on_a_port_of_the_machine_keeps_nobody_from_his_own_on_it(router: Shaped) -> None:
    net = router.netns
    router.done(rate(1000 * MBIT, "ingress"))
    with listening(f"{net.name}-pod") as pod, listening(net.name) as here:
        net.run(sys.executable, "-I", "-S", "-c", SEND.format(there=POD), at=net.peer)
        assert pod.stdout is not None
        try:
            assert pod.communicate(timeout=60)[0] == "hello\n"
        finally:
            pod.kill()
            here.kill()


@pytest.mark.parametrize(
    ("family", "here"), [("AF_INET", "192.0.2.1"), ("AF_INET6", "fd00:c0de::1")], ids=["IPv4", "IPv6"]
)
@pytest.mark.parametrize(
    ("port", "of_the_api", "where"),
    [(8080, True, API), (22, False, htb.SYSTEM), (8080, False, htb.OTHERS)],
    ids=["a workload's", "SSH", "of somebody else"],
)
def test_a_connection_is_in_the_class_of_whose_it_is(
    router: Shaped, family: str, here: str, port: int, of_the_api: bool, where: TargetId | int
) -> None:
    net = router.netns
    for address, at in (("fd00:c0de::1/64", net.name), ("fd00:c0de::2/64", net.peer)):
        net.ip("addr", "add", address, "dev", "eth0", "nodad", at=at)
    router.done(rate(1000 * MBIT, "ingress"), value(API, "floor", 100 * MBIT, "ingress"))
    at = router.places[API] if of_the_api else router.work.make("other")
    with router.started(at, SERVE.format(here=here, port=port, family=family)) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        upload(net, here, port)
    assert router.counted(where, "ingress").sent >= SIZE
