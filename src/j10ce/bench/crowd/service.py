"""A latency-sensitive service, as a process: open loop, Poisson arrivals, a pool of workers. Standard library only.

    python -m j10ce.bench.crowd.service PARENT FD RATE LEAST SECONDS WORKERS KIND AT CPU_US SEED PRIORITY

The arrival schedule is drawn before the start. A worker takes the next request, waits until it is due, does what a
request of that KIND does, and records the latency from the instant at which it was DUE: one that finds every worker
busy or no CPU free pays for that too. Workers are processes, because threads of one interpreter take turns.

`ready` is printed first; then it waits for a line on standard input, so that it can be put where it belongs before it
forks. FD is memory shared with PARENT: a pair of doubles for each request, due after seconds, and took seconds (0: not
served yet). LEAST is the rate at the
beginning and the end of a day; as high as RATE: it stands still. A PRIORITY above 0 is one of SCHED_FIFO.
"""

from __future__ import annotations

import gc
import math
import mmap
import os
import random
import struct
import sys
import time
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from typing import Final

from j10ce.bench.crowd import redis
from j10ce.bench.crowd.mortal import mortal
from j10ce.bench.crowd.requests import KINDS, Request

PAIR: Final = 16  # bytes of a request in the shared memory
LEAD_S: Final = 0.05  # from the last worker's start to the beginning of the schedule
FAILED: Final = 1  # exit code where a request cannot be done
DENIED: Final = 3  # where the kernel refuses SCHED_FIFO
READY: Final = b"!"
_NUMBER: Final = struct.Struct("=q")


def schedule(rate: float, least: float, seconds: float, seed: int) -> array[float]:
    """When requests are due, in seconds after the start; the same seed gives the same.

    A day is  least + (rate − least) · sin²(π t / seconds):  arrivals of the highest rate, thinned out.
    """
    chance, due, at = random.Random(seed), array("d"), 0.0
    while (at := at + chance.expovariate(rate)) < seconds:
        here = least + (rate - least) * math.sin(math.pi * at / seconds) ** 2
        if least == rate or chance.random() * rate < here:
            due.append(at)
    return due


def main() -> int:
    parent, fd = int(sys.argv[1]), int(sys.argv[2])
    rate, least, seconds = map(float, sys.argv[3:6])
    workers, kind, where = int(sys.argv[6]), sys.argv[7], sys.argv[8]
    cpu_us, seed, priority = map(int, sys.argv[9:12])
    mortal(parent)
    due = schedule(rate, least, seconds, seed)
    shared = mmap.mmap(fd, max(len(due), 1) * PAIR)
    table: memoryview[float] = memoryview(shared).cast("d")
    for n, at in enumerate(due):
        table[2 * n] = at
    gc.disable()
    gc.freeze()
    print(f"ready {len(due)}", flush=True)
    if not sys.stdin.readline():
        return 0
    if priority and not _raised(priority):
        return DENIED
    with redis.started(where) if kind == "redis" else nullcontext():
        return _serve(table, len(due), workers, lambda: KINDS[kind](where, cpu_us / 1e6))


def _raised(priority: int) -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True


def _serve(table: memoryview[float], total: int, workers: int, able: Callable[[], Request]) -> int:
    tickets, up, gate = _tickets(total), os.pipe(), os.pipe()
    me = os.getpid()
    pids = [_fork(table, tickets, able, me, up[1], gate[0]) for _ in range(workers)]
    if any(os.read(up[0], 1) != READY for _ in pids):
        return FAILED
    begin = struct.pack("=d", time.monotonic() + LEAD_S)
    os.write(gate[1], begin * workers)
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)


def _tickets(total: int) -> int:
    """A file whose offset all workers share: the kernel gives each number to one of them."""
    fd = os.memfd_create("tickets")
    os.write(fd, array("q", range(total)).tobytes())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _fork(table: memoryview[float], tickets: int, able: Callable[[], Request], parent: int, up: int, gate: int) -> int:
    if pid := os.fork():
        return pid
    try:
        mortal(parent)
        request = able()
        os.write(up, READY)
        (begin,) = struct.unpack("=d", os.read(gate, 8))
        _work(table, tickets, request, begin)
        os._exit(0)
    except Exception as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr, flush=True)
        os.write(up, b"?")
    finally:
        os._exit(FAILED)


def _work(table: memoryview[float], tickets: int, request: Request, begin: float) -> None:
    read, sleep, now = os.read, time.sleep, time.monotonic
    while ticket := read(tickets, _NUMBER.size):
        (n,) = _NUMBER.unpack(ticket)
        due = begin + table[2 * n]
        if (wait := due - now()) > 0:
            sleep(wait)
        request()
        table[2 * n + 1] = now() - due


if __name__ == "__main__":
    sys.exit(main())
