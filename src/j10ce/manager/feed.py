"""The watch of a node's document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from j10ce.manager.encoded import line
from j10ce.manager.view import View

BOOKMARK_S: Final = 15.0


async def document_lines(view: View, node: str, known: str) -> AsyncGenerator[bytes]:
    """The node's document whenever its hash moves away from `known`, a bookmark when nothing did for a while."""
    await view.ready()
    held = known
    view.documents.follow(node)
    try:
        while True:
            document = view.documents.of(node)
            if document.hash != held:
                yield line("MODIFIED" if held else "ADDED", document.data)
                held = document.hash
                continue  # it may have moved on while this one was sent
            try:
                async with asyncio.timeout(BOOKMARK_S):
                    await view.moved(node)
            except TimeoutError:
                yield line("BOOKMARK", msgspec.json.encode({"hash": held}))
    finally:
        view.documents.unfollow(node)
