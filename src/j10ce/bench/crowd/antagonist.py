"""Those who compete with the service, as one process and its children. Standard library only.

    python -m j10ce.bench.crowd.antagonist PARENT KIND COUNT

`ready` and the process ids of COUNT children are printed first; they wait for a line on standard input, so that each
can be put where it belongs.

    spinner   wants a CPU all the time
    waker     sleeps and wakes thousands of times a second
    forker    makes short-lived children as fast as it can
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from j10ce.bench.crowd.mortal import mortal

NAP_S: Final = 0.0002
BRIEF_S: Final = 0.0001  # on a CPU, between two naps


def spin() -> NoReturn:
    while True:
        pass


def wake() -> NoReturn:
    sleep, cpu = time.sleep, time.thread_time
    while True:
        until = cpu() + BRIEF_S
        while cpu() < until:
            pass
        sleep(NAP_S)


def fork() -> NoReturn:
    while True:
        if pid := os.fork():
            os.waitpid(pid, 0)
        else:
            os._exit(0)


KINDS: Final[Mapping[str, Callable[[], NoReturn]]] = {"spinner": spin, "waker": wake, "forker": fork}


def main() -> int:
    mortal(int(sys.argv[1]))
    compete, count = KINDS[sys.argv[2]], int(sys.argv[3])
    gate = os.pipe()
    me = os.getpid()
    pids = [_fork(compete, me, gate) for _ in range(count)]
    print("ready", *pids, flush=True)
    if sys.stdin.readline():
        os.write(gate[1], b"!" * count)
        os.close(gate[1])
        os.waitpid(-1, 0)
    return 0


def _fork(compete: Callable[[], NoReturn], parent: int, gate: tuple[int, int]) -> int:
    if pid := os.fork():
        return pid
    try:
        mortal(parent)
        os.close(gate[1])
        if os.read(gate[0], 1):
            compete()
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
