"""Waking those who wait for a change."""

from __future__ import annotations

import asyncio


class Bell:
    """Wakes all who wait, whenever it rings; while nobody waits, ringing costs next to nothing."""

    def __init__(self) -> None:
        self._heard: asyncio.Event | None = None

    def ring(self) -> None:
        if self._heard is not None:
            self._heard.set()
            self._heard = None

    async def wait(self) -> None:
        """Returns when it rings next."""
        if self._heard is None:
            self._heard = asyncio.Event()
        await self._heard.wait()
