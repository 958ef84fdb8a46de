"""The pieces that node documents are joined from: each object once, as agents see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import msgspec

from j10ce.model.kinds import Hold, Policy
from j10ce.model.schema import encode
from j10ce.model.stored import Key
from j10ce.policy.document.document import FORMAT, combined, fingerprint, knows

PARTS: Final = (
    ("QoSProfile", b"profiles"),
    ("MinimalReservationPolicy", b"policies"),
    ("NodeStrategy", b"strategies"),
    ("Hold", b"holds"),
)
MOST_SPELLED: Final = 16 << 20  # bytes of changes that are kept for others who lag as far
MOST_CHANGES: Final = 1000  # of what every node obeys that are remembered; whoever lags further gets all of it


class Fragment:
    """An object as agents see it; made when someone has to get it. Equal to another of the same content."""

    def __init__(self, obj: Policy | Hold) -> None:
        self.obj = obj

    @cached_property
    def data(self) -> bytes:
        return encode(self.obj)

    @cached_property
    def mark(self) -> bytes:
        return fingerprint(self.obj)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Fragment) and self.mark == other.mark)

    def __hash__(self) -> int:
        return hash(self.mark)


Changes = Mapping[Key, Fragment | None]  # None: gone


class Content:
    """What nodes that obey the same share."""

    def __init__(self, fragments: Mapping[Key, Fragment], format_: int = FORMAT) -> None:
        parts = [(kind, part) for kind, part in PARTS if knows(format_, kind)]
        ordered = [(part, [fragments[k] for k in sorted(fragments) if k.kind == kind]) for kind, part in parts]
        self._ordered = ordered
        self._marks = b"".join(fragment.mark for _, listed in ordered for fragment in listed)
        self._hashes: dict[bytes, tuple[str, bytes]] = {}
        self.made = 0  # bytes of its body, once that is there

    @cached_property
    def body(self) -> bytes:
        """The end of the document, from its lists on; made for the first who needs it whole."""
        body = b"," + b",".join(_list(part, listed) for part, listed in self._ordered) + b"}"
        self.made = len(body)
        return body

    def hashed(self, part: bytes) -> tuple[str, bytes]:
        """The hash together with what one node alone gets, and that: nodes that get the same share the bytes."""
        known = self._hashes.get(part)
        if known is None:
            known = self._hashes[part] = (combined((self._marks,), part), part)
        return known


def spelled(changes: Changes, format_: int = FORMAT) -> bytes:
    """The end of a NodeChange, from its lists on."""
    lists, changes = [], {key: fragment for key, fragment in changes.items() if knows(format_, key.kind)}
    for kind, part in PARTS:
        listed = [fragment for key, fragment in sorted(changes.items()) if key.kind == kind and fragment is not None]
        lists += [_list(part, listed)] if listed else []
    gone = ["/".join(filter(None, key)) for key, fragment in sorted(changes.items()) if fragment is None]
    lists += [b'"gone":' + msgspec.json.encode(gone)] if gone else []
    return b"".join(b"," + each for each in lists) + b"}"


def _list(part: bytes, fragments: Iterable[Fragment]) -> bytes:
    return b'"%s":[%s]' % (part, b",".join(fragment.data for fragment in fragments))


class Common:
    """What every node obeys, and what of it changed lately. Every change makes a version."""

    def __init__(self) -> None:
        self.held: dict[Key, Fragment] = {}
        self.version = 0
        self._log: deque[Key] = deque(maxlen=MOST_CHANGES)  # the last one made this version
        self._spelled: dict[int, tuple[Changes, bytes]] = {}  # by the version that they begin with

    def put(self, key: Key, fragment: Fragment | None) -> Fragment | None:
        """What it was before."""
        before = self.held.pop(key, None)
        if fragment is not None:
            self.held[key] = fragment
        if before != fragment:
            self.version += 1
            self._log.append(key)
            self._spelled.clear()
        return before

    def since(self, version: int) -> tuple[Changes, bytes] | None:
        """What changed after a version, also as it is sent; None: that is too long ago."""
        count = self.version - version
        if count > len(self._log):
            return None
        if version not in self._spelled:
            keys = list(self._log)[len(self._log) - count :]
            changes = {key: self.held.get(key) for key in keys}
            data = spelled(changes)
            if sum(len(kept) for _, kept in self._spelled.values()) + len(data) > MOST_SPELLED:
                self._spelled.clear()
            self._spelled[version] = (changes, data)
        return self._spelled[version]


class Shares:
    """Who has which fragment of its own: found by node and by object."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[Key, Fragment]] = {}
        self._by_key: dict[Key, set[str]] = {}

    def of(self, node: str) -> Mapping[Key, Fragment]:
        return self._by_node.get(node, {})

    def having(self, key: Key) -> set[str]:
        return set(self._by_key.get(key, ()))

    def put(self, node: str, key: Key, fragment: Fragment | None) -> bool:
        """Whether that changes anything."""
        if self.of(node).get(key) == fragment:
            return False
        if fragment is None:
            self._drop(node, key)
        else:
            self._by_node.setdefault(node, {})[key] = fragment
            self._by_key.setdefault(key, set()).add(node)
        return True

    def forget(self, node: str) -> None:
        for key in list(self.of(node)):
            self._drop(node, key)

    def _drop(self, node: str, key: Key) -> None:
        del self._by_node[node][key]
        if not self._by_node[node]:
            del self._by_node[node]
        self._by_key[key].discard(node)
        if not self._by_key[key]:
            del self._by_key[key]
