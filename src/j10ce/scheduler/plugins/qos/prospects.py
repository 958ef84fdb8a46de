"""Which rows lazy mode looks at for a pod: those first where, when somebody last looked, one could wait longest.

It says where to look, and in which order; who goes is reckoned anew there. While all pods of an owner run, how long
it can wait stays as it is, so what was seen lately is nearly true, and a row on which a pod came or went is not known.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from j10ce.scheduler.book.book import Book

KNOWN_S: Final = 5.0  # what was seen on a row
MOST_ROWS: Final = 512  # that are looked at for one pod; the next one goes on behind them
FEW_ROWS: Final = 64  # of them unknown, where somebody was found who can go


class Prospect(NamedTuple):
    row: int
    laxity: float  # of who can wait longest there
    version: int  # of the book, and the time: when that was seen
    at: float


class Prospects:
    def __init__(self) -> None:
        self._seen: dict[int, Prospect] = {}
        self._left = 0.0
        self._first = 0

    def note(self, prospect: Prospect) -> None:
        self._seen[prospect.row] = prospect

    def known(self, rows: list[int], book: Book, left: float, now: float) -> list[Prospect]:
        """The best first. `left`: of the period; with another one all is different."""
        if left > self._left:
            self._seen.clear()
        self._left = left
        touched = book.touched_at
        known = [
            each
            for row in rows
            if (each := self._seen.get(row)) is not None and touched[row] <= each.version and now - each.at <= KNOWN_S
        ]
        return sorted(known, key=lambda each: (-each.laxity, each.row))

    def unknown(self, rows: list[int], known: list[Prospect], most: int) -> list[int]:
        """So many of the others, each in its turn."""
        seen = {each.row for each in known}
        others = [row for row in rows if row not in seen]
        if len(others) <= most:
            return others
        first = self._first % len(others)
        self._first += most
        return (others[first:] + others[:first])[:most]
