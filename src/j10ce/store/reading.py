"""Objects as a store holds them, read by whatever release runs: strictness belongs to requests, not to what is stored.

Fields of a later release are left out, and beside the spec whatever is beyond today's bounds. What still makes no sense
is Unreadable: the stores leave it out and count it, so that one such object costs nobody else anything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from j10ce.daemon.strays import Strays
from j10ce.errors import Finding, Invalid, StoreError
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object
from j10ce.model.schema import parse_stored
from j10ce.model.stored import Key, Unreadable

OR_DISCARD: Final = ", or delete it as an administrator with `j10ce-qos delete --unreadable`"


def refuse_partial(unread: Collection[Key]) -> None:
    """What is moved or kept as a backup is whole, or is not begun; raises StoreError."""
    if unread:
        some = ", ".join(map(str, sorted(unread)[:5]))
        problem = f"{len(unread)} stored objects cannot be read by this release ({some})"
        raise StoreError(f"{problem}, so this would not be all of them: correct or delete them first")


def read_stored(key: Key, data: bytes, strays: Strays) -> Object:
    """Raises Unreadable."""
    kind = KINDS.get(key.kind)
    if kind is None:
        raise Unreadable(key, f"this release has no kind {key.kind}")
    unknown: list[Finding] = []
    try:
        obj: Object = parse_stored(data, kind.struct, unknown)  # type: ignore[assignment]
    except Invalid as e:
        raise Unreadable(key, str(e)) from None
    strays.tell(key.kind, unknown)
    return obj
