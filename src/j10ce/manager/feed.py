"""The watch of a node's document."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from j10ce.manager.documents import Document, Documents, Mark
from j10ce.manager.encoded import line
from j10ce.manager.view import View


async def document_lines(view: View, node: str, known: str, *, changes: bool = False) -> AsyncGenerator[bytes]:
    """The node's document whenever its hash moves away from `known`, a bookmark when nothing did for a while.

    With `changes`, whoever was told the document before is told only what is other than there.
    """
    await view.ready()
    held, before = known, None
    view.documents.follow(node)
    try:
        while True:
            epoch, document = view.wishes.epoch, view.documents.of(node)
            mark = view.documents.mark(node) if changes else None
            if document.hash != held:
                yield _told(view.documents, node, document, held, before)
            held, before = document.hash, mark
            # What changed while it was sent woke nobody.
            if epoch == view.wishes.epoch and not await view.moved(node):
                yield line("BOOKMARK", msgspec.json.encode({"hash": held}))
    finally:
        view.documents.unfollow(node)


def _told(documents: Documents, node: str, document: Document, held: str, before: Mark | None) -> bytes:
    """Nothing was awaited since `document` was made: the change leads to it."""
    change = documents.change(node, before) if before else None
    if change is None:
        return line("MODIFIED" if held else "ADDED", document.data)
    return line("CHANGED", b'%s,"since":"%s"%s' % (document.head, held.encode(), change))
