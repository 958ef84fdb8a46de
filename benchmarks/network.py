"""Who gets what of a link: floors of eight workloads in three tiers, small requests beside bulk, and what it costs.

A veth pair between two network namespaces of this run, real senders in cgroups of this run; bytes by the kernel's own
count. The arms take turns on the same link, so that numbers are ratios within one run. As root; the machine's own links
are not touched.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.facts import machine_facts
from benchmarks.traffic.crowd import crowd, memory
from benchmarks.traffic.path import path
from benchmarks.traffic.settle import settle
from j10ce.bench.figures import percentile
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.net import htb
from j10ce.model.knob import TargetId
from tests.enforce.net.shaping import API, MBIT, Shaped, rate, value
from tests.enforce.workbench import Workbench, until
from tests.netns import Netns

LINK: Final = 100 * MBIT
TIERS: Final = {"sensitive": (1.0, 20 * MBIT, 2), "standard": (4.0, 10 * MBIT, 3), "besteffort": (7.0, 5 * MBIT, 3)}
PLUGIN: Final = ("tbf", "rate", "100mbit", "burst", "64kb", "latency", "25ms")  # as it spells a limit
SETTLE_S, LOOK_S = 2.0, 6.0
REQUESTS: Final = 400
BULK_PORT, RPC_PORT = 7001, 7002
BULK = "import socket\ns = socket.create_connection(('192.0.2.2', 7001))\nwhile True: s.send(bytes(65536))\n"
RPC = """
import socket, time
s = socket.create_connection(("192.0.2.2", 7002))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range({count}):
    begun = time.perf_counter()
    s.send(bytes(100))
    s.recv(100)
    print(time.perf_counter() - begun)
"""


class Bed:
    """The link, and whoever sends on it."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self._running: list[tuple[TargetId, subprocess.Popen[str]]] = []
        self.received = 0
        for port, serve in ((BULK_PORT, self._swallow), (RPC_PORT, _answer)):
            with shaped.netns.inside(shaped.netns.peer):
                listening = socket.create_server(("192.0.2.2", port), backlog=64)
            threading.Thread(target=_accept, args=(listening, serve), daemon=True).start()

    def _swallow(self, peer: socket.socket) -> None:
        while data := peer.recv(1 << 20):
            self.received += len(data)

    def start(self, who: TargetId, code: str) -> subprocess.Popen[str]:
        at = self.shaped.places[who]
        started = self.shaped.started(at, code)
        self._running.append((who, started))
        return started

    def end(self, who: TargetId | None = None) -> None:
        """Whoever is running, or those of one workload."""
        for owner, child in [r for r in self._running if who in (None, r[0])]:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()
            self._running.remove((owner, child))


def main() -> int:
    if os.geteuid():
        print("Unsupported: this needs root")
        return 0
    machine_facts()
    with bench() as bed:
        shaped = bed.shaped
        met = [
            floors(bed),
            settle(shaped, bed.start, bed.end),
            requests(bed),
            path(shaped),
            crowd(shaped),
            memory(shaped),
        ]
    print(f"network: {'met' if all(met) else 'MISSED'}")
    return not all(met)


@contextmanager
def bench() -> Iterator[Bed]:
    netns, work = Netns(), Workbench(Hierarchies.discover(), f"j10cebench-{os.getpid()}")
    netns.build()
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Bed(Shaped(netns, work, Path(folder) / "journal"))
    finally:
        work.clear()
        netns.clear()


def floors(bed: Bed) -> bool:
    """Everybody wants all of the link."""
    shaped, floor_of = bed.shaped, {}
    shaped.done(rate(LINK))
    for tier, (priority, floor, count) in TIERS.items():
        for n in range(count):
            who = shaped.admit(f"{tier}{n}")
            floor_of[who] = floor
            shaped.done(value(who, "floor", floor), value(who, "priority", priority))
    for who in floor_of:
        bed.start(who, BULK)
    until(lambda: all(shaped.counted(who).sent for who in floor_of))
    time.sleep(SETTLE_S)
    sent, whole = rates(shaped, [*floor_of, htb.WHOLE])
    bed.end()
    least = min(sent[who] / floor for who, floor in floor_of.items())
    print(f"8 workloads, 3 tiers, {LINK / MBIT:g} Mbit/s: least of a floor {least:.1%}, sum {whole / LINK:.1%}")
    for tier in TIERS:
        mine = [sent[who] / MBIT for who in floor_of if f"/{tier}" in who]
        print(f"  {tier}: {', '.join(f'{m:.1f}' for m in mine)} Mbit/s")
    shaped.kernel.revert()
    return least >= 0.98 and 0.97 <= whole / LINK <= 1.01


def rates(shaped: Shaped, of: Sequence[TargetId | int]) -> tuple[dict[TargetId | int, float], float]:
    """Bits per second over some seconds; the last is the whole."""
    begun, before = time.monotonic(), [shaped.counted(who).sent for who in of]
    time.sleep(LOOK_S)
    after, took = [shaped.counted(who).sent for who in of], time.monotonic() - begun
    per_s = {who: (b - a) * 8 / took for who, a, b in zip(of, before, after, strict=True)}
    return per_s, per_s[of[-1]]


def requests(bed: Bed) -> bool:
    """Of one that is protected: alone, beside four that send all they can, and beside them with nobody protected.

    The last in two ways: a class for each, and all behind the queue that Kubernetes' bandwidth plugin makes.
    """
    shaped = bed.shaped
    bulk = [shaped.admit(f"bulk{n}") for n in range(4)]
    shaped.done(rate(LINK))
    protect = (value(API, "floor", 10 * MBIT), value(API, "priority", 0.0))
    alone: list[float] = []
    beside: list[float] = []
    bare: list[float] = []
    plugin: list[float] = []
    for _ in range(2):
        shaped.done(*protect, *(value(who, "priority", 7.0) for who in bulk))
        alone += asked(bed, [])
        beside += asked(bed, bulk)
        shaped.done(
            value(API, "floor", 0.0), value(API, "priority", 4.0), *(value(who, "priority", 4.0) for who in bulk)
        )
        bare += asked(bed, bulk)
        shaped.kernel.revert()
        shaped.netns.run("tc", "qdisc", "add", "dev", "eth0", "root", *PLUGIN)
        plugin += asked(bed, bulk)
        shaped.netns.run("tc", "qdisc", "del", "dev", "eth0", "root")
        shaped.done(rate(LINK))
    shaped.kernel.revert()
    a, b, n, p = (percentile(sorted(times), 0.99) * 1e3 for times in (alone, beside, bare, plugin))
    print(
        f"100 bytes there and back, p99: alone {a:.2f} ms, beside bulk {b:.2f} ms, unprotected {n:.2f} ms,"
        f" by the bandwidth plugin's queue {p:.2f} ms"
    )
    medians = ", ".join(f"{statistics.median(times) * 1e3:.2f}" for times in (alone, beside, bare, plugin))
    print(f"  ÷ alone {b / a:.2f}, ÷ unprotected {b / n:.2f}, ÷ the plugin's {b / p:.2f}; medians {medians} ms")
    return b / a <= 1.5 and b / n <= 0.2 and b <= p


def asked(bed: Bed, bulk: Sequence[TargetId]) -> list[float]:
    for who in bulk:
        bed.start(who, BULK)
    time.sleep(SETTLE_S if bulk else 0.0)
    out, _ = bed.start(API, RPC.format(count=REQUESTS)).communicate()
    bed.end()
    return [float(line) for line in out.split()]


def _accept(listening: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    while True:
        peer, _ = listening.accept()
        threading.Thread(target=_served, args=(peer, serve), daemon=True).start()


def _served(peer: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    with peer:
        try:
            serve(peer)
        except ConnectionError:
            return


def _answer(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := peer.recv(100):
        peer.send(data)


if __name__ == "__main__":
    sys.exit(main())
