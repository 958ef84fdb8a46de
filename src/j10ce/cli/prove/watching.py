"""A run while it lasts: one line that says how far it is, or a bar for each second."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final

from j10ce.bench.figures import percentile
from j10ce.bench.report.text import LEAST_WIDTH
from j10ce.bench.report.words import ms
from j10ce.bench.run import Audience
from j10ce.bench.taken import Arm, Taken
from j10ce.cli.output import Verbatim, progress, say, warn

LEAST_MS: Final = 0.5
MOST_MS: Final = 5000.0
FIGURE: Final = 18  # columns before a bar


class ProgressLine:
    """n of m and the time left: rewritten on a terminal, elsewhere a line for each turn."""

    def __init__(self, scenario: str) -> None:
        self._scenario, self._began = scenario, time.monotonic()
        self._done = self._turns = 0

    def begin(self, arm: Arm, turn: int, turns: int) -> None:
        self._done, self._turns = turn, turns
        if sys.stderr.isatty():
            progress(_cut(f"{self._where()} {arm.name}{self._left()}"), last=False)

    def second(self, arm: Arm, number: int, latencies: Sequence[float]) -> None:
        if sys.stderr.isatty() and latencies:
            p99 = ms(percentile(sorted(latencies), 0.99) * 1e3)
            progress(_cut(f"{self._where()} {arm.name} {p99}{self._left()}"), last=False)

    def end(self, arm: Arm, taken: Taken) -> None:
        took = sorted(t for second in taken.seconds for t in second)
        words = f"{self._where()} {arm.name} p99 {ms(percentile(took, 0.99) * 1e3)}"
        if sys.stderr.isatty():
            progress(_cut(words), last=self._done + 1 == self._turns)
        else:
            warn(words)

    def _where(self) -> str:
        return f"{self._scenario} {self._done + 1}/{self._turns}"

    def _left(self) -> str:
        if not self._done:
            return ""
        seconds = (time.monotonic() - self._began) / self._done * (self._turns - self._done)
        return f", {int(seconds) // 60}:{int(seconds) % 60:02} left"


def _cut(words: str) -> str:
    """A line that is rewritten must be one line."""
    return words[: shutil.get_terminal_size().columns - 1]


class LiveBars:
    """Each second as a bar, on a fixed logarithmic scale."""

    def __init__(self, columns: int) -> None:
        self._columns = max(columns, LEAST_WIDTH)

    def begin(self, arm: Arm, turn: int, turns: int) -> None:
        from textwrap import wrap

        say(Verbatim("\n".join(wrap(f"{turn + 1}/{turns} {arm.name}: {arm.means}", self._columns))))

    def second(self, arm: Arm, number: int, latencies: Sequence[float]) -> None:
        from j10ce.bench.report.text import bar

        if latencies:
            p99 = percentile(sorted(latencies), 0.99) * 1e3
            drawn = bar(min(p99, MOST_MS), (LEAST_MS, MOST_MS), self._columns - FIGURE)
            say(Verbatim(f"{number + 1:4} s {ms(p99):>10} {drawn}"))

    def end(self, arm: Arm, taken: Taken) -> None:
        """Every second has been shown."""


def _conform(line: ProgressLine, bars: LiveBars) -> tuple[Audience, Audience]:
    return line, bars
