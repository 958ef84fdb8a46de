"""The bounded exact search behind first-fit: finds an arrangement where one exists, or proves that none does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from j10ce.scheduler.ledger.witness import Amounts, Item, Placement, hopeless

BUDGET: Final = 50_000  # looks at a node; about a fifth of a second
MOST_STEPS: Final = 600  # items × nodes: the depth of the search


class SearchResult(NamedTuple):
    placements: list[Placement] | None  # in the order of the items
    proven: bool  # None, and certainly so
    looks: int = 0


class _GaveUp(Exception):
    pass


def search(free: Amounts, items: Sequence[Item], budget: int = BUDGET) -> SearchResult:
    """Places for all units of all items next to nothing else on `free`, deterministically."""
    if hopeless(free, items):
        return SearchResult(None, proven=True)
    if sum(int(i.rows.sum()) for i in items) > MOST_STEPS:
        return SearchResult(None, proven=False)
    looking = _Search(free, items, budget)
    try:
        arranged = looking.descend(0)
    except _GaveUp:
        return SearchResult(None, proven=False, looks=looking.looks)
    return SearchResult(looking.placements if arranged else None, proven=not arranged, looks=looking.looks)


class _Search:
    """Depth first: one item after the other, each spread over its rows in every way that differs.

    Rows that are alike to all items are interchangeable: of those, the earlier never gets fewer units than the later.
    A state that failed once is not looked at again.
    """

    def __init__(self, free: Amounts, items: Sequence[Item], budget: int) -> None:
        self.free: list[list[int]] = free.tolist()
        self.shapes = [tuple(int(n) for n in i.shape) for i in items]
        self.items = items
        self.order = sorted(range(len(items)), key=lambda n: (int(items[n].rows.sum()), [-s for s in self.shapes[n]]))
        self.rows = [[int(r) for r in i.rows.nonzero()[0]] for i in items]
        self.kind = [tuple(bool(i.rows[row]) for i in items) for row in range(len(free))]
        self.budget, self.looks = budget, 0
        self.placements: list[Placement] = [{} for _ in items]
        self.failed: set[tuple[object, ...]] = set()

    def descend(self, depth: int) -> bool:
        if depth == len(self.order):
            return True
        state = self._state(depth)
        if state in self.failed or not self._possible(depth):
            return False
        n = self.order[depth]
        rows = sorted(self.rows[n], key=lambda r: (self.kind[r], self.free[r]))
        fits = [self._fits(n, row) for row in rows]
        alike = [k > 0 and self._alike(rows[k - 1], rows[k]) for k in range(len(rows))]
        rest = [0] * (len(rows) + 1)
        for k in reversed(range(len(rows))):
            rest[k] = rest[k + 1] + fits[k]
        spread = _Spread(n, rows, fits, alike, rest)
        if self._spread(depth, spread, 0, self.items[n].units, 0):
            return True
        self.failed.add(state)
        return False

    def _spread(self, depth: int, s: _Spread, k: int, left: int, before: int) -> bool:
        """Put `left` units on the rows from the k-th on."""
        if not left:
            return self.descend(depth + 1)
        if left > s.rest[k]:
            return False
        self.looks += 1
        if self.looks > self.budget:
            raise _GaveUp
        most = min(s.fits[k], left, before) if s.alike[k] else min(s.fits[k], left)
        for units in range(most, max(0, left - s.rest[k + 1]) - 1, -1):
            self._move(s.item, s.rows[k], units)
            if self._spread(depth, s, k + 1, left - units, units):
                return True
            self._move(s.item, s.rows[k], -units)
        return False

    def _move(self, n: int, row: int, units: int) -> None:
        if not units:
            return
        self.free[row] = [f - s * units for f, s in zip(self.free[row], self.shapes[n], strict=True)]
        placed = self.placements[n]
        placed[row] = placed.get(row, 0) + units
        if not placed[row]:
            del placed[row]

    def _possible(self, depth: int) -> bool:
        """Each item that is left fits alone, and all of them together want no more than there is."""
        left = self.order[depth:]
        for n in left:
            if sum(self._fits(n, row) for row in self.rows[n]) < self.items[n].units:
                return False
        rows = {row for n in left for row in self.rows[n]}
        return all(
            sum(self.shapes[n][r] * self.items[n].units for n in left) <= sum(max(0, self.free[row][r]) for row in rows)
            for r in range(len(self.shapes[0]))
        )

    def _fits(self, n: int, row: int) -> int:
        free = self.free[row]
        return max(0, min(f // s for f, s in zip(free, self.shapes[n], strict=True) if s))

    def _alike(self, a: int, b: int) -> bool:
        return self.kind[a] == self.kind[b] and self.free[a] == self.free[b]

    def _state(self, depth: int) -> tuple[object, ...]:
        """What is left, whatever the names of the rows."""
        return (depth, *sorted((self.kind[row], tuple(free)) for row, free in enumerate(self.free)))


class _Spread(NamedTuple):
    """One item over its rows: how many fit on each, and on all from there on."""

    item: int
    rows: list[int]
    fits: list[int]
    alike: list[bool]
    rest: list[int]
