"""Trying again: how long to wait before (longer each time, and by chance, so that many do not come back together)
and when not to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator


def pauses(first_s: float = 0.05, most_s: float = 2.0) -> Iterator[float]:
    """Seconds, for ever: half of what grows twofold up to `most_s` is certain, half is chance."""
    at_most_s = first_s
    while True:
        yield at_most_s * (0.5 + random.random() / 2)  # noqa: S311  chance, not a secret
        at_most_s = min(most_s, at_most_s * 2)


def end_if_cancelled() -> None:
    """A TaskGroup that is cancelled while a child fails tells of the child alone: whoever carries on must not then."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError
