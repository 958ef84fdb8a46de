"""Whether any weights at all hold what is promised, by trying: it knows nothing of our law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PER_SHARE = [1.02**n for n in range(-500, 500)]  # millicores that one share may stand for inside a group


class Child(NamedTuple):
    """A target, or the strangers of a group: promised `floor`; `low` to `high` shares, the same for a fixed weight."""

    floor: int
    low: int
    high: int
    inside: tuple[Child, ...] = ()


def least(group: Sequence[Child]) -> float:
    """The fewest millicores with which some weights give each of the group what it must have; infinite if none do.

    With more than the fewest the same weights do it.
    """
    needs = [max(c.floor, least(c.inside)) if c.inside else c.floor for c in group]
    return min(_totals(group, needs))


def _totals(group: Sequence[Child], needs: Sequence[float]) -> Iterator[float]:
    for per_share in PER_SHARE:
        fits = all(n <= c.high * per_share for c, n in zip(group, needs, strict=True))
        times = (max(n, c.low * per_share) for c, n in zip(group, needs, strict=True))
        yield math.fsum(times) if fits else math.inf
