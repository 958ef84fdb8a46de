"""Lines of kernel files that begin with a disk's number: `8:0 rbps=1048576 wbps=max`, or `8:0 1048576` on cgroup v1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from j10ce.model.machine.disk import parse_number


def by_disk(text: str) -> dict[str, str]:
    """What follows the number, by number; of a disk that is named twice the last. Other lines are left out."""
    split = (line.strip().partition(" ") for line in text.split("\n"))
    return {number: rest.strip() for number, _, rest in split if parse_number(number)}


def pairs(rest: str) -> Mapping[str, str]:
    """`rbps=1048576 wbps=max` by key; a word without a value is left out."""
    return dict(_pairs(rest))


def limit(text: str | None) -> float:
    """A number, or no limit: nothing said, `max`, and what is no number at all."""
    return float(text) if text and text.isascii() and text.isdecimal() else math.inf


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    for word in rest.split():
        key, equals, value = word.partition("=")
        if key and equals and value:
            yield key, value
