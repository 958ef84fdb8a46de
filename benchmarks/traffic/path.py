"""What queueing costs whoever never has to wait: CPU time for each packet and each byte, against the bare link.

By the CPU time of sender and receiver, which a busy machine changes little, and by what passed, which it changes a lot.
The arms take turns; of each the best round counts.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final, NamedTuple

from j10ce.model.machine.link import OPEN
from tests.enforce.net.shaping import API, MBIT, SYNC, Shaped, rate, value

ROUNDS: Final = 5
SECONDS: Final = 1.5
FREE: Final = 100_000 * MBIT  # of a tree that never holds anything back
PORT: Final = 7004
LEAST_BYTES, LEAST_PACKETS, MOST_CPU = 0.9, 0.85, 1.05
SEND_PACKETS = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.2", {PORT}))
data, sent = bytes(64), 0
begun, cpu = time.monotonic(), time.process_time()
while time.monotonic() < begun + {SECONDS}:
    for _ in range(100):
        s.send(data)
    sent += 100
print(sent, time.process_time() - cpu)
"""
SEND_BYTES = f"""
import socket, time
s = socket.create_connection(("192.0.2.2", {PORT}))
data, sent = memoryview(bytes(1 << 20)), 0
begun, cpu = time.monotonic(), time.process_time()
while time.monotonic() < begun + {SECONDS}:
    sent += s.send(data)
print(sent, time.process_time() - cpu)
"""
KEEP_PACKETS = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("192.0.2.2", {PORT}))
print("ready", flush=True)
input()
print(0)
"""
KEEP_BYTES = f"""
import socket, time
s = socket.create_server(("192.0.2.2", {PORT}))
print("ready", flush=True)
c, room = s.accept()[0], bytearray(1 << 20)
cpu = time.process_time()
while c.recv_into(room):
    pass
print(time.process_time() - cpu)
"""


class Cost(NamedTuple):
    """Of one packet or byte."""

    cpu_s: float
    a_second: float


def path(shaped: Shaped) -> bool:
    packets: dict[str, list[Cost]] = {}
    sent: dict[str, list[Cost]] = {}
    for _ in range(ROUNDS):
        for arm in ("bare", "a class", "passing by"):
            if arm != "bare":
                shaped.done(rate(FREE if arm == "a class" else OPEN), value(SYNC, "ceil", 50.0 * MBIT))
            if arm == "a class":
                shaped.done(value(API, "floor", 1000 * MBIT))
            packets.setdefault(arm, []).append(_cost(shaped, SEND_PACKETS, KEEP_PACKETS))
            sent.setdefault(arm, []).append(_cost(shaped, SEND_BYTES, KEEP_BYTES))
            shaped.kernel.revert()
    return all([_said("a workload in a class", "a class", packets, sent),
                _said("who has no ceiling, on a link of unknown speed", "passing by", packets, sent)])  # fmt: skip


def _said(who: str, arm: str, packets: dict[str, list[Cost]], sent: dict[str, list[Cost]]) -> bool:
    by_packet, by_byte = (_least(d["bare"]) / _least(d[arm]) for d in (packets, sent))
    many, much = (max(c.a_second for c in d[arm]) / max(c.a_second for c in d["bare"]) for d in (packets, sent))
    bare = _least(packets["bare"]) * 1e9, 8e-9 * max(c.a_second for c in sent["bare"])
    print(
        f"data path, {who}: {by_packet:.0%} of the packets and {by_byte:.0%} of the bytes that a second of CPU carries"
        f" by the bare veth ({bare[0]:.0f} ns a packet); {many:.0%} and {much:.0%} at the clock ({bare[1]:.1f} Gbit/s)"
    )
    return by_packet >= LEAST_PACKETS and much >= LEAST_BYTES and 1 / by_byte <= MOST_CPU


def _least(costs: list[Cost]) -> float:
    return min(c.cpu_s for c in costs)


def _cost(shaped: Shaped, send: str, keep: str) -> Cost:
    """Sender and receiver together."""
    inside = ("nsenter", f"--net=/run/netns/{shaped.netns.peer}", sys.executable, "-I", "-S", "-c", keep)
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        keeper.stdout.readline()
        with shaped.started(shaped.places[API], send) as sender:
            count, cpu = sender.communicate()[0].split()
        theirs = float(keeper.communicate("\n")[0])
    return Cost((float(cpu) + theirs) / int(count), int(count) / SECONDS)
