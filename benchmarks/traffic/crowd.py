"""A thousand workloads on one link: what it takes to give each other values, and whether a packet is lost by it."""

from __future__ import annotations

import gc
import os
import re
import socket
import time
from pathlib import Path
from typing import Final

from j10ce.model.knob import TargetId
from j10ce.model.plan import Plan, ValueChange
from tests.enforce.net.shaping import API, ETH0, MBIT, Shaped, rate, value

MANY: Final = 1000
USUAL: Final = 200
MOST_MIB: Final = 10.0
ROUNDS: Final = 5
GOAL_MS: Final = 100.0
LINK: Final = 10_000 * MBIT
STEADY = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.2", 7003))
print("ready", flush=True)
for n in range(1 << 30):
    s.send(n.to_bytes(8, "big"))
    time.sleep(0.0002)
"""


def crowd(shaped: Shaped) -> bool:
    """Each has a class already; every floor, ceiling and level becomes another one, then the first one again."""
    who = shaped.admitted(f"crowd{n}" for n in range(MANY))
    shaped.done(rate(LINK), *(v for target in who for v in said(target, 0)))
    with shaped.netns.inside(shaped.netns.peer):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        receiver.bind(("192.0.2.2", 7003))
    receiver.settimeout(5.0)
    shaped.done(value(API, "floor", MBIT))
    with shaped.started(shaped.places[API], STEADY) as sender:
        assert sender.stdout is not None
        sender.stdout.readline()
        took, cpu = zip(*(_changed(shaped, who, n + 1) for n in range(ROUNDS)), strict=True)
        sender.kill()
    came = _came(receiver)
    receiver.close()
    shaped.kernel.revert()
    lost = came[-1] - came[0] + 1 - len(came)
    print(
        f"{MANY} workloads on one link, floor, ceiling and level of each changed: {min(cpu):.0f} ms of CPU at best,"
        f" {min(took):.0f} ms at the clock; {lost} of {len(came)} packets lost meanwhile"
    )
    return lost == 0 and min(cpu) <= GOAL_MS


def memory(shaped: Shaped) -> bool:
    """Of a process of its own: with as many workloads and nothing queued for, and once each has a class."""
    who = shaped.admitted(f"usual{n}" for n in range(USUAL))
    reading, writing = os.pipe()
    if os.fork() == 0:
        shaped.start()
        before = _own_mib()
        shaped.done(rate(LINK), *(v for target in who for v in said(target, 0)))
        shaped.kernel.read_now([ETH0])
        os.write(writing, f"{_own_mib() - before}".encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="ascii") as answer:
        more = float(answer.read())
    os.wait()
    shaped.start()
    shaped.kernel.revert()
    print(f"{USUAL} workloads with a class each: {more:.1f} MiB more in the process that keeps them")
    return more <= MOST_MIB


def _own_mib() -> float:
    """What is this process's alone."""
    gc.collect()
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return sum(int(n) for n in re.findall(r"Private_\w+:\s+(\d+)", text)) / 1024


def said(target: TargetId, turn: int) -> list[ValueChange]:
    floor, ceiling, level = ((2, 900, 2.0), (3, 800, 5.0))[turn % 2]
    return [
        value(target, "floor", floor * MBIT),
        value(target, "ceil", ceiling * MBIT),
        value(target, "priority", level),
    ]


def _changed(shaped: Shaped, who: list[TargetId], turn: int) -> tuple[float, float]:
    plan = Plan(tuple(v for target in who for v in said(target, turn)))
    begun, cpu = time.perf_counter(), time.process_time()
    refused = shaped.kernel.apply(plan).refused()
    took = (time.perf_counter() - begun) * 1e3, (time.process_time() - cpu) * 1e3
    assert not refused, refused[:3]
    return took


def _came(receiver: socket.socket) -> list[int]:
    receiver.setblocking(False)
    out = []
    while True:
        try:
            out.append(int.from_bytes(receiver.recv(64), "big"))
        except BlockingIOError:
            return out
