"""What is sampled of traffic is what was sent: by the link, and by whom."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from j10ce.host.net.links import LinkTable
from j10ce.model.knob import TargetId
from j10ce.observe.sensors.traffic import TrafficSensor
from tests.enforce.net.shaping import API, ETH0, MBIT, SYNC, Shaped, rate, value

PACKET = 1042 * 8.0


@pytest.fixture
def sensor(shaped: Shaped) -> Iterator[TrafficSensor]:
    """Of the link's namespace, whose counters are those of a process in it."""
    inside = subprocess.Popen(["nsenter", f"--net=/run/netns/{shaped.netns.name}", "sleep", "infinity"])
    while os.readlink(f"/proc/{inside.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        pass
    with shaped.netns.inside():
        sensor = TrafficSensor(LinkTable(), f"/proc/{inside.pid}/net/dev")
    yield sensor
    inside.send_signal(signal.SIGKILL)
    inside.wait()


def sampled(sensor: TrafficSensor, now: float) -> dict[tuple[TargetId, str], float]:
    return {(s.target, s.metric): s.value for s in sensor.sample(now, ())}


def test_rates_are_of_whoever_sent(shaped: Shaped, sensor: TrafficSensor) -> None:
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT), value(SYNC, "ceil", 500 * MBIT))
    shaped.send(None, count=1)  # neighbours have found each other
    sampled(sensor, 0.0)
    shaped.send(shaped.places[API], count=100)
    shaped.send(shaped.places[SYNC], count=10)
    seen = sampled(sensor, 10.0)
    assert seen[API, "net.egress.rate"] == pytest.approx(10 * PACKET)
    assert seen[SYNC, "net.egress.rate"] == pytest.approx(PACKET)
    assert seen[ETH0, "net.egress.rate"] >= 11 * PACKET
    assert (seen[API, "net.egress.drops"], seen[API, "net.egress.backlog"]) == (0.0, 0.0)


def test_what_does_not_fit_is_dropped_and_counted(shaped: Shaped, sensor: TrafficSensor) -> None:
    shaped.netns.ip("link", "set", "eth0", "txqueuelen", "5")
    shaped.done(rate(1000 * MBIT), value(SYNC, "ceil", 64_000.0))
    sampled(sensor, 0.0)
    shaped.send(shaped.places[SYNC], count=200)
    seen = sampled(sensor, 1.0)
    assert seen[SYNC, "net.egress.drops"] > 0
    assert seen[SYNC, "net.egress.backlog"] >= 0


def test_without_a_tree_only_links_are_sampled(shaped: Shaped, sensor: TrafficSensor) -> None:
    sampled(sensor, 0.0)
    shaped.send(None, count=10)
    assert {target for target, _ in sampled(sensor, 1.0)} == {ETH0}
    shaped.done(rate(1000 * MBIT), value(API, "floor", 100 * MBIT))
    sampled(sensor, 2.0)
    assert (API, "net.egress.rate") in sampled(sensor, 3.0)
    shaped.kernel.revert()
    assert {target for target, _ in sampled(sensor, 4.0)} == {ETH0}
