"""The watch of a node's document."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from j10ce.manager.api.forms import line
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.documents.documents import Document, Documents, Mark
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.lines import Lines
from j10ce.policy.document.document import FORMAT

Parts = tuple[bytes, ...]  # of one line; what nodes have in common is one of them, and shared


async def document_lines(
    view: View, node: str, known: str, large: Lines, *, changes: bool = False, format_: int = FORMAT
) -> AsyncGenerator[Parts]:
    """The node's document whenever its hash moves away from `known`, a bookmark when nothing did for a while.

    With `changes`, whoever has the document before gets only what differs from it. What is large waits for
    room among what its caller has not read, and is then sent as it is at that time.
    """
    await view.ready()
    telling = Telling(view, node, known, changes=changes, format_=format_)
    view.documents.follow(node)
    try:
        while True:
            parts = telling.next()
            if (size := sum(map(len, parts))) <= LARGE:
                telling.done()
                if parts:
                    yield parts
            else:
                del parts  # the document may change while this waits for room
                async with large.room_for(size):
                    parts = telling.next()
                    telling.done()
                    if parts:
                        yield parts
                    del parts
            # What changed while it was sent woke nobody.
            if telling.epoch == view.wishes.epoch and not await view.moved(node):
                yield (line("BOOKMARK", msgspec.json.encode({"hash": telling.held})),)
    finally:
        view.documents.unfollow(node)


class Telling:
    """What one watcher got last, and what it gets next."""

    def __init__(self, view: View, node: str, known: str, *, changes: bool, format_: int) -> None:
        self._view, self._node, self._changes, self._format = view, node, changes, format_
        self.held, self.epoch = known, 0
        self._before: Mark | None = None
        self._next: tuple[str, Mark | None] = (known, None)

    def next(self) -> Parts:
        """Empty where nothing is other than before."""
        documents = self._view.documents
        self.epoch, document = self._view.wishes.epoch, documents.of(self._node, self._format)
        self._next = (document.hash, documents.mark(self._node) if self._changes else None)
        return self._line(documents, document) if document.hash != self.held else ()

    def done(self) -> None:
        """The watcher is getting it."""
        self.held, self._before = self._next

    def _line(self, documents: Documents, document: Document) -> Parts:
        """Nothing was awaited since `document` was made: the change leads to it."""
        change = documents.change(self._node, self._before, self._format) if self._before else None
        type_ = "CHANGED" if change is not None else "MODIFIED" if self.held else "ADDED"
        begin, _, end = line(type_, b" ").partition(b" ")
        if change is None:
            return begin + document.head, document.content.body, end
        return b'%s%s,"since":"%s"' % (begin, document.head, self.held.encode()), change, end


async def in_pieces(lines: AsyncGenerator[Parts]) -> AsyncGenerator[bytes]:
    """Lines as bytes, large ones slice by slice: a watcher that does not read keeps one slice, not a document."""
    async with aclosing(lines):
        async for parts in lines:
            if sum(map(len, parts)) <= LARGE:
                yield b"".join(parts)
                continue
            for part in parts:
                for at in range(0, len(part), LARGE):
                    yield part[at : at + LARGE]
            del parts, part
