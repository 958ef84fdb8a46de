"""Processes that do not outlive the one that started them, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_GONE: Final = 0  # exit code of one whose starter was gone before it could ask to go with it


def mortal(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """The kernel sends this process `by` when `parent` ends. Children do not inherit it, exec keeps it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(_GONE)


def dying_by(by: signal.Signals) -> Callable[[], None]:
    """The same for a child between fork and exec; everything is loaded before the fork."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def before_exec() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(by), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(_GONE)

    return before_exec
