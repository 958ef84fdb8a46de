"""What nodes have in common: for each question about a node's object, one number per row for each different answer.

So a rule is asked once for every value that there is, and not once for every node. Rows that are no node answer None,
whose number is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from j10ce.scheduler.book.facts import NodeFacts
from j10ce.scheduler.cluster import Mask, Rows

MOST_COLUMNS: Final = 512
FEW: Final = 16  # rows, for which looking for equal ones costs more than it saves
Extract = Callable[[NodeFacts], Hashable]


class NodeRows(Protocol):
    """The book, as far as this looks at it."""

    nodes: list[NodeFacts | None]
    changed: int  # version of the last change of any node
    changed_at: Rows  # by row


class Coded(NamedTuple):
    """`values` by code; None, code zero, stands for nodes that have no such value or are gone."""

    codes: Rows
    values: list[Hashable]
    code: dict[Hashable, int]


class NodeIndex:
    """`version` moves when any node changes."""

    def __init__(self, book: NodeRows) -> None:
        self._book = book
        self.version = 0
        self._columns: dict[Hashable, tuple[Coded, Extract]] = {}

    def label(self, key: str) -> Coded:
        return self.column(("label", key), lambda node: node.labels.get(key))

    def column(self, name: Hashable, of: Extract) -> Coded:
        """`name` stands for what `of` looks at."""
        self._follow()
        known = self._columns.get(name)
        if known is None:
            if len(self._columns) >= MOST_COLUMNS:
                self._columns.clear()
            coded = Coded(np.zeros(len(self._book.changed_at), np.int64), [None], {None: 0})
            for row, node in enumerate(self._book.nodes):
                _learn(coded, row, node, of)
            known = self._columns[name] = coded, of
        return known[0]

    def _follow(self) -> None:
        if self.version == self._book.changed:
            return
        rows = np.flatnonzero(self._book.changed_at > self.version)
        self.version = self._book.changed
        for name, (coded, of) in self._columns.items():
            if len(coded.codes) < len(self._book.changed_at):
                coded = _grown(coded, len(self._book.changed_at))
                self._columns[name] = coded, of
            for row in rows.tolist():
                _learn(coded, row, self._book.nodes[row], of)


def judge(column: Coded, rows: Rows, rule: Callable[[Hashable], bool]) -> Mask:
    codes = column.codes[rows]
    if len(rows) <= FEW:
        return np.array([rule(column.values[code]) for code in codes], np.bool_)
    table: npt.NDArray[np.bool_] = np.zeros(len(column.values), np.bool_)
    for code in np.unique(codes).tolist():
        table[code] = rule(column.values[code])
    answer: Mask = table[codes]
    return answer


def _learn(coded: Coded, row: int, node: NodeFacts | None, of: Extract) -> None:
    value = None if node is None else of(node)
    code = coded.code.get(value)
    if code is None:
        code = coded.code[value] = len(coded.values)
        coded.values.append(value)
    coded.codes[row] = code


def _grown(coded: Coded, rows: int) -> Coded:
    codes: Rows = np.zeros(rows, np.int64)
    codes[: len(coded.codes)] = coded.codes
    return coded._replace(codes=codes)
