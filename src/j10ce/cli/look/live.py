"""A screen that is kept up to date: each frame is written over the last one, so that nothing flickers."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
import tty
from types import TracebackType
from typing import Any, Final

from j10ce.cli.screen import fitted
from j10ce.model.text.cells import shown

ENTER: Final = "\x1b[?1049h\x1b[?25l"  # a screen of its own, and no cursor
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Live:
    """The terminal is as it was before once this ends, however it ends."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> Live:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        sys.stdout.write(ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def show(self, text: str) -> None:
        """As many lines as the terminal has; what was there before is written over, not cleared."""
        rows = shutil.get_terminal_size().lines
        lines = fitted(shown(text, keep="\n"), sys.stdout).split("\n")[:rows]
        sys.stdout.write(HOME + f"{END_OF_LINE}\n".join(lines) + END_OF_LINE + END_OF_SCREEN)
        sys.stdout.flush()

    @staticmethod
    def in_seconds(seconds: float) -> float:
        return time.monotonic() + seconds

    def key(self, ends: float) -> str:
        """The key that is typed before that moment; empty where none is."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, ends - time.monotonic()))
        return os.read(self._fd, 1).decode(errors="replace") if ready else ""
