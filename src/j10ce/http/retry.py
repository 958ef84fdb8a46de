"""Trying again: how long to wait before (longer each time, and by chance, so that many do not come back together)
and when not to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

from j10ce.errors import Later


def pauses(first_s: float = 0.05, most_s: float = 2.0, *, certain: float = 0.5) -> Iterator[float]:
    """Seconds, for ever: so much of what grows twofold up to `most_s` is certain, the rest is chance."""
    at_most_s = first_s
    while True:
        yield at_most_s * random.uniform(certain, 1.0)  # noqa: S311  chance, not a secret
        at_most_s = min(most_s, at_most_s * 2)


def asked_s(error: Exception) -> float:
    """How long a peer that failed so asks to be left alone."""
    return error.after_s if isinstance(error, Later) else 0.0


def end_if_cancelled() -> None:
    """A TaskGroup that is cancelled while a child fails tells of the child alone: whoever carries on must not then."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError
