"""How connections fare is what TCP knows of them, and of whom: here, and in a pod's own network."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest
from msgspec.structs import replace

from j10ce.host.net import connections
from j10ce.model.knob import TargetId
from j10ce.model.workload import Handle, Workload
from j10ce.observe.sensors.connections import ConnectionSensor
from tests.enforce.net.shaping import API, SYNC, Shaped
from tests.enforce.workbench import until

SERVE = """
import socket
s = socket.create_server(("192.0.2.2", 7005))
print("ready", flush=True)
c = s.accept()[0]
while c.recv(65536):
    pass
"""
SEND = """
import socket, sys
s = socket.create_connection(("192.0.2.2", 7005))
s.sendall(bytes({size}))
print("sent", flush=True)
sys.stdin.readline()
s.sendall(bytes({size}))
sys.stdin.read()
"""


def looked(
    shaped: Shaped, *, own_network: bool, sample_at: tuple[float, ...]
) -> list[dict[tuple[TargetId, str], float]]:
    api = Workload("default", "api", handle=shaped.places[API])
    if own_network:
        sensor = ConnectionSensor(shaped.work.hierarchies, connections.here())
        api = replace(api, own_network=True)
    else:
        with shaped.netns.inside():
            sensor = ConnectionSensor(shaped.work.hierarchies, connections.here())
    return [{(s.target, s.metric): s.value for s in sensor.sample(now, [api])} for now in sample_at]


@contextmanager
def sending(shaped: Shaped, size: int, at: Handle | None = None) -> Iterator[subprocess.Popen[str]]:
    """All of it has been taken by TCP, and the connection stays."""
    with ExitStack() as both:
        server = both.enter_context(shaped.started(shaped.places[SYNC], SERVE, where=shaped.netns.peer))
        both.callback(server.kill)
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        sender = both.enter_context(shaped.started(at or shaped.places[API], SEND.format(size=size)))
        both.callback(sender.kill)
        assert sender.stdout is not None
        assert sender.stdout.readline() == "sent\n"
        yield sender


@pytest.mark.parametrize("own_network", [False, True], ids=["the machine's network", "a network of its own"])
def test_a_round_trip_is_that_of_whoevers_connection_it_is(shaped: Shaped, own_network: bool) -> None:
    with sending(shaped, 10_000):
        first, second = looked(shaped, own_network=own_network, sample_at=(100.0, 200.0))
    assert 0 < first[API, "net.rtt"] < 10
    assert (API, "net.retransmits") not in first, "what was sent before somebody looked is of no known time"
    assert second[API, "net.retransmits"] == 0.0
    assert {target for target, _ in second} == {API}


def test_what_was_sent_again_is_counted(shaped: Shaped) -> None:
    with shaped.netns.inside():
        sensor = ConnectionSensor(shaped.work.hierarchies, connections.here())
    api, looks = Workload("default", "api", handle=shaped.places[API]), count(100, 100)

    def sent_again() -> float:
        return {s.metric: s.value for s in sensor.sample(next(looks), [api])}.get("net.retransmits", 0.0)

    with sending(shaped, 10_000) as sender:
        assert (sent_again(), sent_again()) == (0.0, 0.0)
        shaped.netns.ip("route", "add", "blackhole", "192.0.2.1/32", at=shaped.netns.peer)
        assert sender.stdin is not None
        sender.stdin.write("more\n")
        sender.stdin.flush()
        until(lambda: sent_again() > 0)


def test_a_cgroup_that_is_made_later_below_a_workload_is_the_workloads(shaped: Shaped) -> None:
    with shaped.netns.inside():
        sensor = ConnectionSensor(shaped.work.hierarchies, connections.here())
    api = Workload("default", "api", handle=shaped.places[API])
    with sending(shaped, 1000, shaped.places[SYNC]):
        assert list(sensor.sample(100.0, [api])) == []
    with sending(shaped, 1000, shaped.work.make("api", "later")):
        assert [s.target for s in sensor.sample(200.0, [api]) if s.metric == "net.rtt"] == [API]
