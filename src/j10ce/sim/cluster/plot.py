"""A picture of outcomes as SVG: for each class, how available its owners are, from the worst to the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from j10ce.sim.cluster.outcome import PolicyOutcome

WIDTH, HEIGHT, GAP, LEFT, TOP = 320, 200, 56, 56, 64
LINES: Final = ("#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0550ae")
GRID: Final = "#d0d7de"
INK: Final = "#1f2328"
FONT: Final = "system-ui, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MOST_PANELS: Final = 12
TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


def plotted(name: str, outcomes: Sequence[PolicyOutcome], promised: Mapping[str, float]) -> str:
    """`promised`: the SLO of each class that has one. The same outcomes give the same bytes."""
    panels = list(dict.fromkeys(of for outcome in outcomes for of, curve in outcome.curves.items() if curve))
    shown = panels[:MOST_PANELS]
    width = LEFT + max(len(shown), 1) * (WIDTH + GAP)
    height = TOP + HEIGHT + GAP + 20 * len(outcomes)
    parts = [_text(LEFT, 28, f"{name}: availability of owners, the worst to the best", size=15, bold=True)]
    for n, of in enumerate(shown):
        parts += _panel(LEFT + n * (WIDTH + GAP), of, promised.get(of), outcomes)
    parts += _legend(outcomes)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="{FONT}">'
    )
    page = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join((head, f"<title>{_written(name)}</title>", page, *parts, "</svg>\n"))


def _panel(left: float, of: str, slo: float | None, outcomes: Sequence[PolicyOutcome]) -> Iterator[str]:
    yield _text(left, TOP - 10, of if slo is None else f"{of} (SLO {slo:g})", bold=True)
    for tick in TICKS:
        yield _line(left, _down(tick), left + WIDTH, _down(tick), GRID)
        yield _text(left - 6, _down(tick) + 4, f"{tick:g}", size=10, anchor="end")
        yield _text(left + tick * WIDTH, TOP + HEIGHT + 16, f"{tick:.0%}", size=10, anchor="middle")
    if slo is not None:
        yield _line(left, _down(slo), left + WIDTH, _down(slo), INK, ' stroke-dasharray="4 4"')
    for n, outcome in enumerate(outcomes):
        if curve := outcome.curves.get(of):
            last = max(len(curve) - 1, 1)
            points = " ".join(f"{left + i / last * WIDTH:.1f},{_down(value):.1f}" for i, value in enumerate(curve))
            yield f'<polyline points="{points}" fill="none" stroke="{_colour(n)}" stroke-width="2"/>'


def _legend(outcomes: Sequence[PolicyOutcome]) -> Iterator[str]:
    for n, outcome in enumerate(outcomes):
        down = TOP + HEIGHT + 44 + 20 * n
        yield f'<rect x="{LEFT}" y="{down - 6}" width="24" height="4" fill="{_colour(n)}"/>'
        yield _text(LEFT + 32, down, f"{outcome.policy}, {outcome.what_if}" if outcome.what_if else outcome.policy)


def _colour(n: int) -> str:
    return LINES[n % len(LINES)]


def _down(value: float) -> float:
    return TOP + (1 - min(max(value, 0.0), 1.0)) * HEIGHT


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}"{more}/>'


def _text(x: float, y: float, words: str, *, size: int = 12, bold: bool = False, anchor: str = "start") -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{INK}"{weight}>{_written(words)}</text>'


def _written(words: str) -> str:
    """No XML has most control characters, however they are spelled: with one of them it is no picture."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in words))
