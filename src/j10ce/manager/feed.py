"""The watch of a node's document."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from j10ce.manager.encoded import line
from j10ce.manager.view import View


async def document_lines(view: View, node: str, known: str) -> AsyncGenerator[bytes]:
    """The node's document whenever its hash moves away from `known`, a bookmark when nothing did for a while."""
    await view.ready()
    held = known
    view.documents.follow(node)
    try:
        while True:
            epoch, document = view.wishes.epoch, view.documents.of(node)
            if document.hash != held:
                yield line("MODIFIED" if held else "ADDED", document.data)
                held = document.hash
            # What changed while it was sent woke nobody.
            if epoch == view.wishes.epoch and not await view.moved(node):
                yield line("BOOKMARK", msgspec.json.encode({"hash": held}))
    finally:
        view.documents.unfollow(node)
