"""A verdict on a terminal: bars on a logarithmic scale, then the figures. From 40 columns on. Pure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from j10ce.bench.report.words import ms, sentences, table
from j10ce.bench.verdict import Proof

LEAST_WIDTH: Final = 40
_PARTS: Final = " ▏▎▍▌▋▊▉█"  # of one character
_VALUE: Final = 9  # columns


def drawn(verdict: Proof, columns: int) -> str:
    columns = max(columns, LEAST_WIDTH)
    load = verdict.load
    head = f"{verdict.scenario}: p99 of a service beside {load.antagonists} {load.antagonist}s (log scale)"
    about = f"{verdict.machine}; {verdict.rounds} rounds of {load.seconds:g} s"
    plain = [*textwrap.wrap(head, columns), *textwrap.wrap(about, columns)]
    said = (line for sentence in sentences(verdict) for line in textwrap.wrap(sentence, columns))
    return "\n".join([*plain, "", *bars(verdict, columns), "", *figures(verdict, columns), "", *said])


def bars(verdict: Proof, columns: int) -> Iterator[str]:
    names = max((len(line.arm) for line in verdict.lines), default=0)
    p99s = [line.p99 for line in verdict.lines]
    for line in verdict.lines:
        drawn = bar(line.p99, p99s, columns - names - _VALUE - 2)
        yield f"{line.arm:<{names}} {ms(line.p99):>{_VALUE}} {drawn}".rstrip()


def bar(value: float, among: Sequence[float], width: int) -> str:
    """As long as the logarithm of a value, from a little below the least to the greatest of them."""
    known = [v for v in among if 0 < v < math.inf]
    if not known or value <= 0:
        return ""
    low, high = min(known) / 1.5, max(known)
    share = math.log(min(value, high) / low) / math.log(high / low)
    eighths = max(round(share * width * 8), 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_PARTS[rest] if rest else "")


def figures(verdict: Proof, columns: int) -> Iterator[str]:
    heads, *rows = table(verdict.lines)
    widths = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]
    if sum(widths) + 2 * (len(widths) - 1) <= columns:
        for row in (heads, *rows):
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        return
    for row in rows:
        yield row[0]
        words = (f"{name} {cell}" for name, cell in zip(heads[1:], row[1:], strict=True) if cell)
        yield from _joined(list(words), columns)


def _joined(words: list[str], columns: int) -> Iterator[str]:
    """Two columns in and comma between, no word broken."""
    line = ""
    for word in words:
        longer = f"{line}, {word}" if line else f"  {word}"
        if len(longer) > columns and line:
            yield f"{line},"
            longer = f"  {word}"
        line = longer
    yield line
