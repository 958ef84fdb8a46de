"""How much memory of a workload is protected: by its reservation, and by percentages of its request."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.law import pages_down, pages_up
from j10ce.model.workload import Entitlement

# A workload whose every page is protected can only be killed: this share of its limit stays reclaimable.
RECLAIMABLE: Final = 0.05


class Protection(NamedTuple):
    """Bytes that are never reclaimed, and bytes that are reclaimed last."""

    min: float = 0.0
    low: float = 0.0

    def merged(self, other: Protection) -> Protection:
        return Protection(max(self.min, other.min), max(self.low, other.low))

    def plus(self, other: Protection) -> Protection:
        return Protection(self.min + other.min, self.low + other.low)

    def where_claimed(self, other: Protection) -> Protection:
        """The sum, for the kinds of protection that `self` claims at all."""
        return Protection(self.min and self.min + other.min, self.low and self.low + other.low)


def most_min(limit: float, page: int) -> float:
    """The largest memory.min under a memory.max of `limit`: always below it."""
    if limit == math.inf:
        return math.inf
    return max(0.0, pages_down(limit - max(page, limit * RECLAIMABLE), page))


def promised(e: Entitlement, page: int) -> Protection:
    """The reservation as memory.min, and as memory.low where memory.max leaves memory.min too little room."""
    floor = pages_up(e.floor.memory, page)
    least = min(floor, most_min(e.ceiling.memory, page))
    return Protection(least, floor if least < floor else 0.0)


def by_percent(e: Entitlement, page: int) -> Protection:
    """Percentages of the request; memory.low never falls below memory.min once it is set."""
    request, m = e.requests.memory, e.memory
    least = 0.0 if m.min_percent is UNSET else pages_down(request * m.min_percent / 100, page)
    least = min(least, most_min(e.ceiling.memory, page))
    low = 0.0 if m.low_percent is UNSET else pages_down(request * m.low_percent / 100, page)
    return Protection(least, max(low, least) if low else 0.0)


def claimed(e: Entitlement, page: int) -> Protection:
    """All that this workload's ancestors must cover."""
    return promised(e, page).merged(by_percent(e, page))


def slowed(e: Entitlement, request: float, limit: float, node_memory: int, page: int, kept: float) -> float:
    """Where slowing down begins: request + (limit − request) · percent, in whole pages, never inside what is protected.

    Without a limit the node's memory is the limit; 0 percent means no slowing down.
    """
    percent = e.memory.throttling_percent
    if percent is UNSET or percent == 0:
        return math.inf
    most = node_memory if limit == math.inf else limit
    return max(pages_down(request + (most - request) * percent / 100, page), kept)
