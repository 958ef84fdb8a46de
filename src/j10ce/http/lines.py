"""A stream of bytes, cut into lines."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Without their ends. What follows the last end was cut off, and is dropped."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
