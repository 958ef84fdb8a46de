"""The pieces that node documents are joined from: each object once, as agents see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.model.kinds import Hold
from j10ce.model.schema import encode
from j10ce.policy.document import Policy, combined, fingerprint
from j10ce.store.revise import Key

PARTS: Final = (("QoSProfile", b"profiles"), ("MinimalReservationPolicy", b"policies"), ("Hold", b"holds"))


class Fragment(NamedTuple):
    data: bytes
    mark: bytes


class Content(NamedTuple):
    """What nodes that obey the same share."""

    marks: bytes
    body: bytes  # the end of the document, from its lists on
    hashes: dict[bytes, tuple[str, bytes]]

    def hashed(self, part: bytes) -> tuple[str, bytes]:
        """The hash together with what a node is told alone, and that: nodes that are told the same share the bytes."""
        found = self.hashes.get(part)
        if found is None:
            found = self.hashes[part] = (combined((self.marks,), part), part)
        return found


def fragment_of(obj: Policy | Hold) -> Fragment:
    return Fragment(encode(obj), fingerprint(obj))


def joined(fragments: Mapping[Key, Fragment]) -> Content:
    marks, lists = [], []
    for kind, part in PARTS:
        ordered = [fragments[key] for key in sorted(k for k in fragments if k.kind == kind)]
        marks += [fragment.mark for fragment in ordered]
        lists.append(b'"%s":[%s]' % (part, b",".join(fragment.data for fragment in ordered)))
    return Content(b"".join(marks), b"," + b",".join(lists) + b"}", {})


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
