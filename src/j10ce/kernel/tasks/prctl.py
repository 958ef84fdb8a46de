"""Cookies of core scheduling, as the kernel hands them out: prctl(PR_SCHED_CORE).

A thread can get a new cookie, take over another's, and hand its own on; it cannot set one by number, and nobody can
clear another's but by handing on that it has none. So whoever gives a cookie has it first.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

PR_SCHED_CORE: Final = 62
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)
_ONE_THREAD: Final = 0  # not its process, not its process group
NO_COOKIE: Final = 0


class Core(Protocol):
    """What the kernel does; raises OSError where it will not. `task` 0 is the calling thread."""

    def get(self, task: int, /) -> int: ...
    def create(self) -> None: ...
    def hand_to(self, task: int, /) -> None: ...
    def take_from(self, task: int, /) -> None: ...


class Prctl:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def get(self, task: int, /) -> int:
        cookie = ctypes.c_ulonglong()
        self._call(_GET, task, ctypes.addressof(cookie))
        return cookie.value

    def create(self) -> None:
        self._call(_CREATE, 0)

    def hand_to(self, task: int, /) -> None:
        self._call(_SHARE_TO, task)

    def take_from(self, task: int, /) -> None:
        self._call(_SHARE_FROM, task)

    def _call(self, command: int, task: int, address: int = 0) -> None:
        arguments = map(ctypes.c_ulong, (command, task, _ONE_THREAD, address))
        if self._libc.prctl(PR_SCHED_CORE, *arguments):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def aside(what: Callable[[], T]) -> T:
    """On a thread of its own, which takes whatever cookie it had along when it ends."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(what())
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=run, name="cookies")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
