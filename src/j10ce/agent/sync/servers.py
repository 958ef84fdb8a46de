"""Which of several managers an agent talks to, and how long it waits before it tries again."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from j10ce.http.client import Peer
from j10ce.http.retry import asked_s, pauses

FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 30.0


class Servers:
    """The addresses of the control plane; one of them is in use.

    Every node has an order of its own: the agents of a fleet spread over the managers, and those of a lost manager
    over the others. All tasks of an agent move on together.
    """

    def __init__(self, several: Peer, node: str) -> None:
        """`several.url` may list addresses, separated by commas."""
        urls = several.url.split(",")
        random.Random(node).shuffle(urls)  # noqa: S311  an order, not a secret
        self._peers = tuple(several._replace(url=url) for url in urls)
        self._at = 0

    @property
    def current(self) -> Peer:
        return self._peers[self._at]

    def leave(self, peer: Peer) -> None:
        """`peer` failed; who noticed it first moves on, who notices it later follows."""
        if peer == self.current:
            self._at = (self._at + 1) % len(self._peers)

    def go_home(self) -> None:
        """Back to the first choice, so that a manager that was away gets its agents back."""
        self._at = 0


class Backoff:
    """Doubling waits, spread over their whole length: the agents of a lost manager do not all come in one second."""

    def __init__(self) -> None:
        self.reset()

    async def wait(self, error: Exception) -> None:
        await asyncio.sleep(min(asked_s(error), LONGEST_BACKOFF_S) + next(self._pauses))

    def reset(self) -> None:
        self._pauses = pauses(FIRST_BACKOFF_S, LONGEST_BACKOFF_S, certain=0.0)
