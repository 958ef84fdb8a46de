"""A verdict as SVG: p99 of every arm on a logarithmic scale with its spread by second, under it the seconds. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from j10ce.bench.report.words import ms, times
from j10ce.bench.verdict import Figures, Proof

WIDTH, LEFT, RIGHT, ROW, TOP = 760, 110, 230, 30, 64
COLOURS: Final = {"baseline": "#57606a", "other": "#cf222e", "ours": "#1a7f37", "ceiling": "#8250df"}
GRID: Final = "#d0d7de"
INK: Final = "#1f2328"
FONT: Final = "system-ui, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"


def pictured(verdict: Proof) -> str:
    """The same verdict gives the same bytes."""
    height = TOP + ROW * len(verdict.lines) + 40
    load = verdict.load
    title = f"p99 latency of a service beside {load.antagonists} {load.antagonist}s"
    about = f"{verdict.machine}; {verdict.rounds} rounds of {load.seconds:g} s; dots: single seconds"
    scale = Scale([v for line in verdict.lines for v in (line.p99, *line.p99_by_second)])
    parts = [_text(12, 26, title, size=16, bold=True), _text(12, 46, about, size=11)]
    parts += scale.grid(len(verdict.lines))
    for n, line in enumerate(verdict.lines):
        parts += _row(line, TOP + ROW * n, scale)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="{FONT}">'
    )
    page = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join((head, f"<title>{escape(title)}</title>", page, *parts, "</svg>\n"))


class Scale:
    """Milliseconds to pixels, a decade as wide as the next."""

    def __init__(self, values: list[float]) -> None:
        known = [v for v in values if 0 < v < math.inf] or [1.0]
        self.low = math.floor(math.log10(min(known)))
        self.high = max(math.ceil(math.log10(max(known))), self.low + 1)

    def x(self, value: float) -> float:
        at = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return LEFT + min(at, 1.0) * (WIDTH - LEFT - RIGHT)

    def grid(self, rows: int) -> Iterator[str]:
        bottom = TOP + ROW * rows
        for decade in range(self.low, self.high + 1):
            x = self.x(10.0**decade)
            yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>'
            yield _text(x, bottom + 18, f"{10.0**decade:g} ms", size=11, anchor="middle")


def _row(line: Figures, y: float, scale: Scale) -> Iterator[str]:
    colour, start, end = COLOURS[line.role], scale.x(0.0), scale.x(line.p99)
    middle = y + ROW / 2 - 2
    yield _text(LEFT - 8, middle + 4, line.arm, anchor="end", bold=line.role == "ours")
    size = f'width="{end - start:.1f}" height="{ROW - 12}"'
    yield f'<rect x="{start:.1f}" y="{y + 4}" {size} fill="{colour}" fill-opacity="0.75"/>'
    for p99 in line.p99_by_second:
        yield f'<circle cx="{scale.x(p99):.1f}" cy="{middle:.1f}" r="2" fill="{INK}" fill-opacity="0.45"/>'
    ratio = f", {times(line.ratio)} × alone" if line.ratio else ""
    yield _text(WIDTH - RIGHT + 10, middle + 4, f"{ms(line.p99)}{ratio}", size=11)


def _text(x: float, y: float, words: str, *, size: int = 12, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{INK}"{weight}>{escape(words)}</text>'
