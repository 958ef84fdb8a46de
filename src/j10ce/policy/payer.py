"""Who is charged for a workload: the one rule for a node's ledger, for placement, for the fleet and for the extender.

Of all that promise it a floor, whoever promises the largest dominant share of its node pays, ties by name. A resource
that the node has no measure of can be neither promised there nor paid for.
"""

from __future__ import annotations

from typing import TypeAlias

from j10ce.model.resource import Resources

Rank: TypeAlias = tuple[float, str]  # the least pays


def rank(shape: Resources, source: str, capacity: Resources) -> Rank:
    """`capacity` is all that the node has, as its agent measures it."""
    return -measured(shape, capacity).dominant_share(capacity), source


def measured(amount: Resources, capacity: Resources) -> Resources:
    """Without what the node has no measure of."""
    return Resources._make(a if c else 0 for a, c in zip(amount, capacity, strict=True))
