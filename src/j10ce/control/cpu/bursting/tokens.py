"""What a raised quota costs, where it may last for a period only. Tokens are limits times seconds.

    capacity = period · (multiple − 1);  spent by what is used beyond the limit, earned by what is left of it below 60 %

A bucket that is empty allows nothing until it holds a tenth again. Everyone begins with another part of up to a half,
so that not all stop at once.
"""

from __future__ import annotations

import math
import zlib
from typing import Final, NamedTuple

CALM: Final = 0.6  # of the limit: below it tokens come back
ENOUGH: Final = 0.1  # of the capacity: from here on an empty bucket allows a burst again
SPREAD: Final = 50  # percent of the capacity that the first filling is below


class Bucket(NamedTuple):
    capacity: float
    tokens: float
    empty: bool = False

    @property
    def allows(self) -> bool:
        return not self.empty


def first(name: str, period_s: float, multiple: float) -> Bucket:
    capacity = period_s * (multiple - 1)
    if capacity == math.inf:
        return Bucket(math.inf, math.inf)
    tokens = capacity * (1 + zlib.crc32(name.encode()) % SPREAD) / 100
    return Bucket(capacity, tokens, tokens <= 0)


def after(bucket: Bucket, use: float, elapsed_s: float) -> Bucket:
    """`use`: of the limit."""
    if bucket.capacity == math.inf:
        return bucket
    earned = (1 - use) * max(0.0, elapsed_s) if use >= 1 or use < CALM else 0.0
    tokens = min(bucket.capacity, max(-bucket.capacity, bucket.tokens + earned))
    empty = tokens <= 0 or (bucket.empty and tokens < ENOUGH * bucket.capacity)
    return Bucket(bucket.capacity, tokens, empty)


def resized(bucket: Bucket, period_s: float, multiple: float) -> Bucket:
    """Other terms, the same past."""
    capacity = period_s * (multiple - 1)
    if capacity in (math.inf, bucket.capacity) or bucket.capacity == math.inf:
        return bucket if capacity == bucket.capacity else Bucket(capacity, capacity)
    return bucket._replace(capacity=capacity, tokens=min(capacity, max(-capacity, bucket.tokens)))
