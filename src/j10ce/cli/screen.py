"""Text on a terminal: lines that fit its width, and colours for what matters. Pipes and files get plain text."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Final, TextIO

CONTINUED: Final = 2  # how far the rest of a row is set in
NARROWEST: Final = 20  # columns that the text of the last field has; narrower screens get longer lines
RED, GREEN, YELLOW, BOLD, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_CELL: Final = r"(?:(?<=^)|(?<=  )){}(?=  |$)"  # a whole field of a table
_HEADING: Final = r"^ *[A-Z][A-Z0-9,/-]*(?: [A-Z,]+)*(?: {2,}[A-Z][A-Z0-9,/ -]*)+$"
_FIELD: Final = re.compile(r"(?:(?<=^)|(?<=  ))\S")  # where one begins
STYLES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), style)
    for pattern, style in (
        (_HEADING, BOLD),
        (_CELL.format(r"\d[\w.]*/\d[\w.]*"), RED),  # 0/256Mi: a floor that is not effective
        (_CELL.format(r"(?:False|Degraded|Refused|Expired)"), RED),
        (_CELL.format(r"(?:missing|Pending|Unknown)"), YELLOW),
        (_CELL.format(r"(?:ok|True|Running|Active)"), GREEN),
        (r"(?<=: )holds$|^error(?=: )", BOLD),
        (r"does not hold(?=[:;]|$)", RED),
    )
)


def has_colours(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """By https://no-color.org, and where a terminal says that it has none."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def width(stream: TextIO) -> int | None:
    """Columns of the terminal, or as COLUMNS says; None for pipes and files, whose readers go by lines."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def fitted(text: str, stream: TextIO) -> str:
    """Text as this stream shows it best. It must hold nothing that acts on a terminal."""
    columns = width(stream)
    lines = text if columns is None else "\n".join(_laid_out(text.split("\n"), columns))
    return coloured(lines) if has_colours(stream) else lines


def _laid_out(lines: list[str], columns: int) -> Iterator[str]:
    """Every line by itself, or as the table goes on below that it is in."""
    at = 0
    while at < len(lines):
        starts = [field.start() for field in _FIELD.finditer(lines[at])] if re.match(_HEADING, lines[at]) else [0]
        below = takewhile(lambda row: _in_table(row, starts), lines[at + 1 :]) if starts[-1] else ()  # noqa: B023
        rows = [lines[at], *below]
        at += len(rows)
        crowded = columns - starts[-1] < NARROWEST and max(map(len, rows)) > columns
        breaks = [*_breaks(rows, starts, columns)] if crowded else []
        yield from (_broken(row, breaks, columns) for row in rows)


def _in_table(line: str, starts: list[int]) -> bool:
    """Whether every field of a line begins where a column does."""
    return bool(line) and not re.match(_HEADING, line) and all(line[at - 1 : at] in ("", " ") for at in starts if at)


def _breaks(rows: list[str], starts: list[int], columns: int) -> Iterator[int]:
    """The columns of a table that begin a line of their own, in every row, since one line has no room for all."""
    first = 0
    for start, after in pairwise([*starts, None]):
        if start and max(len(row[first:after].rstrip()) for row in rows) + (CONTINUED if first else 0) > columns:
            first = start
            yield start


def _broken(line: str, breaks: list[int], columns: int) -> str:
    head, *rest = (line[start:end].rstrip() if breaks else line for start, end in pairwise([0, *breaks, None]))
    return "\n".join(folded(piece, columns) for piece in (head, *(" " * CONTINUED + piece for piece in rest if piece)))


def coloured(text: str) -> str:
    for pattern, style in STYLES:
        text = pattern.sub(rf"{style}\g<0>{PLAIN}", text)
    return text


def folded(line: str, columns: int) -> str:
    """A line that goes on below its own last field, where it is longer than the screen is wide."""
    if len(line) <= columns:
        return line
    indent = max((match.end() for match in re.finditer(r" {2,}|^ +", line[:columns])), default=0)
    if columns - indent < NARROWEST:
        indent = min(len(line) - len(line.lstrip()) + 2, max(columns - NARROWEST, 0))
    room = textwrap.TextWrapper(
        width=columns, subsequent_indent=" " * indent, drop_whitespace=True, break_long_words=False,
        break_on_hyphens=False, replace_whitespace=False, expand_tabs=False,
    )  # fmt: skip
    return "\n".join(room.wrap(line))
