"""Who competes with the service, as a process. Standard library only.

    python -m j10ce.bench.crowd.antagonist PARENT KIND

`ready` is printed first; then it waits for a line on standard input, so that it can be put where it belongs.

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
    compete = KINDS[sys.argv[2]]
    print("ready", flush=True)
    if sys.stdin.readline():
        compete()
    return 0


if __name__ == "__main__":
    sys.exit(main())
