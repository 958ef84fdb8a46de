"""Pods go where nodes cost less: a label of each node says its price."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Normalised, Reach, Score, Turned


class CheapNodes:
    name = "CheapNodes"
    reach = Reach.NODE  # nothing but the node's object: an answer is kept until that changes

    class Config(Struct, frozen=True, forbid_unknown_fields=True):
        label: str = "example.com/cents-per-hour"
        most: float = math.inf  # what costs more is not taken; without a price, a node costs that

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return self._prices(book, rows) <= self.config.most

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return Turned((f"node(s) cost more than {self.config.most:g}",), resolvable=False)

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        return -np.minimum(self._prices(book, rows), 1e9)

    def normalise(self, raw: Scores, /) -> Scores:
        low, high = raw.min(initial=0.0), raw.max(initial=-math.inf)
        return (raw - low) * 100.0 / (high - low) if high > low else np.full(len(raw), 100.0)

    def _prices(self, book: Book, rows: Rows) -> Scores:
        """Each label is looked at once, however many nodes have it."""
        column = book.index.label(self.config.label)
        prices = np.array([self._price(value) for value in column.values])
        return prices[column.codes[rows]]

    def _price(self, value: object) -> float:
        try:
            price = float(value) if isinstance(value, str) else math.nan
        except ValueError:
            price = math.nan
        return self.config.most if math.isnan(price) else price


_: tuple[type[Filter], type[Score], type[Normalised]] = (CheapNodes, CheapNodes, CheapNodes)
