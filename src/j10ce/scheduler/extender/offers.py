"""Pods that were offered nodes and are not bound yet.

Which node the scheduler takes is not known until the binding is seen, so a pod is charged on every node that it was
offered; for ten seconds at most, as it may take none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.cluster import Amounts, Rows
from j10ce.scheduler.extender.occupancy import grown, table_of

CHARGED_S: Final = 10.0
MOST: Final = 10_000  # offers at a time; the oldest goes first


class Offer(NamedTuple):
    rows: Rows
    amounts: Amounts  # by row, or one for all of them; beside what a unit covers
    units: Mapping[int, str]  # by row: the policy whose unit it would take
    until: float


class Offers:
    """Times are of one monotonic clock."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}  # by uid, the oldest first
        self._charged = table_of(0)
        self._units: Counter[tuple[str, int]] = Counter()

    def __len__(self) -> int:
        return len(self._offers)

    def charged(self, rows: int) -> Amounts:
        """Of the first so many rows."""
        if len(self._charged) < rows:
            self._charged = grown(self._charged, rows)
        return self._charged[:rows]

    def units(self, source: str, row: int) -> int:
        return self._units[source, row]

    def make(self, uid: str, rows: Rows, amounts: Amounts, units: Mapping[int, str], now: float) -> None:
        """In place of the one that the pod has. A pod without a uid is nobody that we know, and is charged nothing."""
        self.end(uid)
        if uid and len(rows):
            self.charged(int(rows.max()) + 1)
            self._charge(rows, amounts)
            self._units.update((source, row) for row, source in units.items())
            self._offers[uid] = Offer(rows, amounts, units, now + CHARGED_S)
            if len(self._offers) > MOST:
                self.end(next(iter(self._offers)))

    def end(self, uid: str) -> None:
        offer = self._offers.pop(uid, None)
        if offer is None:
            return
        self._charge(offer.rows, -offer.amounts)
        for row, source in offer.units.items():
            self._units[source, row] -= 1
            if not self._units[source, row]:
                del self._units[source, row]

    def _charge(self, rows: Rows, amounts: Amounts) -> None:
        for resource in np.flatnonzero(amounts.any(axis=0) if amounts.ndim > 1 else amounts):
            self._charged[:, resource][rows] += amounts[..., resource]

    def expire(self, now: float) -> None:
        over = []
        for uid, offer in self._offers.items():
            if offer.until > now:
                break
            over.append(uid)
        for uid in over:
            self.end(uid)
