"""Measures one thing after the other on an open place, and says how far it is."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

from j10ce.cli.output import progress, warn
from j10ce.cli.prove.direct_io import WORKS, Figure, OpenDisk, Work, fill, measure
from j10ce.model.machine.calibration import Speed
from j10ce.model.resource import spell

FILLING: Final = "writing what is read later"
FILL_TIMES: Final = 4  # as long as one work lasts, at most


class Measuring:
    """`seconds`: how long each work lasts."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._seconds = name, seconds
        self._doing, self._left = FILLING, 0.0

    def all(self, place: OpenDisk, most: int) -> dict[str, Figure]:
        """By the name of the work; of a place that is only read, what reads."""
        works = [work for work in WORKS if place.writable or not work.write]
        self._left = self._seconds * len(works)
        if most:
            place = fill(place, most, self._seconds * FILL_TIMES, self._tick)
        figures = {}
        for number, work in enumerate(works):
            self._doing, self._left = work.name, self._seconds * (len(works) - number)
            figures[work.name] = measure(place, work, self._seconds, self._tick)
            self._say(work, figures[work.name], last=number + 1 == len(works))
        return figures

    def _tick(self, passed: float) -> None:
        if sys.stderr.isatty():
            left = int(max(0.0, self._left - (0.0 if self._doing == FILLING else passed)))
            progress(_cut(f"{self._name}: {self._doing}, {left // 60}:{left % 60:02} left"), last=False)

    def _say(self, work: Work, figure: Figure, *, last: bool) -> None:
        words = f"{self._name}: {work.name} {spell('diskRead', int(figure.bps))}/s, {figure.iops:.0f} a second"
        if sys.stderr.isatty():
            progress(_cut(words), last=last)
        else:
            warn(words)


def speed(figures: dict[str, Figure], kind: str) -> Speed:
    """Of `reads` or of `writes`; zero where it was not measured."""
    nothing = Figure(0.0, 0.0, 0.0, False)
    long, row, anywhere = (figures.get(n, nothing) for n in (f"long {kind}", f"{kind} in sequence", f"{kind} anywhere"))
    most = max(long.bps, row.bps, anywhere.bps)  # what was done can be done
    return Speed(int(most), int(row.iops), int(anywhere.iops), int(anywhere.slow_us))


def bound(figures: dict[str, Figure]) -> list[str]:
    return [name for name, figure in figures.items() if figure.bound]


def _cut(words: str) -> str:
    """A line that is rewritten must be one line."""
    return words[: shutil.get_terminal_size(os.terminal_size((80, 24))).columns - 1]
