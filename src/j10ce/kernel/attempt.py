"""Trying something that may not even be possible to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from j10ce.errors import QosError
from j10ce.model.plan import Refused

T = TypeVar("T")


def attempt(what: Callable[[], T]) -> T | Refused:
    """A back end or a tree that cannot even try says no like one that tried."""
    try:
        return what()
    except QosError as e:
        return Refused(str(e))
