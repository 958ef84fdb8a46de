"""A stream of bytes, cut into lines."""

from __future__ import annotations

from collections.abc import AsyncIterator


class Cutter:
    """Lines without their ends, as their bytes arrive. What follows the last end is `begun`, and no line yet."""

    def __init__(self) -> None:
        self.begun = bytearray()  # a long line comes in many pieces: each is copied once

    def cut(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        first, *whole = chunk.split(b"\n")
        self.begun += first
        if not whole:
            return []
        *whole, begun = bytes(self.begun), *whole
        self.begun = bytearray(begun)
        return whole


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What was cut off in the middle of a line is dropped."""
    cutter = Cutter()
    async for chunk in chunks:
        for line in cutter.cut(chunk):
            yield line
