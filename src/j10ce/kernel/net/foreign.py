"""Queues that somebody else has set up on a link: recognised, kept word for word, and put back.

What the kernel makes by itself has the handle 0, and comes back by itself once ours is gone.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from j10ce.errors import Corrupt
from j10ce.host.net import queues
from j10ce.host.net.netlink import CREATE, Netlink, NetlinkRequest, attribute, attributes, number
from j10ce.host.net.queues import CHAIN, KIND, NEW_CLASS, NEW_FILTER, NEW_QUEUE, OPTIONS, ROOT, LinkQueue

# Whatever else is there could not be put back as it was: it is never put aside.
KNOWN_QUEUES: Final = frozenset((
    "htb", "tbf", "prio", "pfifo", "bfifo", "pfifo_fast", "fq", "fq_codel", "codel", "sfq", "mq", "noqueue", "cake",
))  # fmt: skip
WITH_CLASSES: Final = frozenset(("htb",))  # the classes of others are made with the queue itself
KNOWN_FILTERS: Final = {"u32": 7, "fw": 4}  # and the attribute of actions, with which they could not be put back
_COUNTS: Final = 9  # TCA_U32_PCNT
_FLAGS: Final = 11  # TCA_U32_FLAGS, of which the kernel adds some by itself
_SAID: Final = 0x3
_SELECTS: Final = 5  # TCA_U32_SEL: tables of u32 without it are made by the kernel
_KINDS: Final = {"q": NEW_QUEUE, "c": NEW_CLASS, "f": NEW_FILTER}
_GLOB: Final = 2  # TCA_HTB_INIT: begins with a version, told at greater length than it is taken, ends with a counter
_VERSION: Final = struct.pack("=I", 3)


def root_of(present: Iterable[LinkQueue]) -> LinkQueue | None:
    """The queue that somebody gave the link; None where it is the kernel's own."""
    return next((q for q in present if q.parent == ROOT and q.handle), None)


def strange(netlink: Netlink, link: int) -> str:
    """What there could not be put back; empty: nothing."""
    for what, q in _everything(netlink, link):
        if q.kind not in (KNOWN_FILTERS if what == "f" else KNOWN_QUEUES):
            return f"a {'filter' if what == 'f' else 'queue'} of kind {q.kind!r}"
        if what == "f" and KNOWN_FILTERS[q.kind] in dict(attributes(q.options)):
            return f"a filter of kind {q.kind!r} with an action"
    return ""


def capture(netlink: Netlink, link: int) -> str:
    """All of it as the kernel tells it, without what it counts; in an order in which it can be made again."""
    return " ".join(f"{what}{base64.b64encode(_bare(q)).decode()}" for what, q in _everything(netlink, link))


def replay(text: str) -> list[NetlinkRequest]:
    """Raises Corrupt for what `capture` never wrote."""
    try:
        return [NetlinkRequest(_KINDS[w[0]], base64.b64decode(w[1:], validate=True), CREATE) for w in text.split()]
    except (KeyError, ValueError) as e:
        raise Corrupt("queueing as it was before cannot be read from the journal") from e


def _everything(netlink: Netlink, link: int) -> list[tuple[str, LinkQueue]]:
    hooks = (queues.INGRESS, ROOT - 1)
    made = [q for q in queues.qdiscs(netlink, link) if q.handle and q.parent not in hooks]
    kinds = {q.handle >> 16: q.kind for q in made}
    classes = [c for c in queues.classes(netlink, link) if kinds.get(c.handle >> 16) in WITH_CLASSES]
    parts = [("q", q) for q in made] + [("c", c) for c in classes]
    filters = chain.from_iterable(queues.filters(netlink, link, q.handle) for q in made)
    return [*_parents_first(parts), *(("f", f) for f in filters if _is_made(f))]


def _parents_first(parts: Sequence[tuple[str, LinkQueue]]) -> Iterator[tuple[str, LinkQueue]]:
    left = sorted(parts, key=lambda p: (p[1].parent != ROOT, p[0] != "q", p[1].handle))
    known = {ROOT}
    while left:
        ready = [p for p in left if p[1].parent in known and (p[0] == "q" or p[1].handle & 0xFFFF_0000 in known)]
        if not ready:
            break  # below something that went meanwhile
        yield from ready
        known |= {q.handle for _, q in ready}
        left = [p for p in left if p not in ready]


def _is_made(seen: LinkQueue) -> bool:
    """Not a table that u32 makes with its first filter."""
    return seen.handle != 0 and (seen.kind != "u32" or _SELECTS in dict(attributes(seen.options)))


def _bare(seen: LinkQueue) -> bytes:
    about = dict(attributes(seen.body, queues.ADDRESS.size))
    kept = {KIND: about[KIND], OPTIONS: _without_counters(seen), CHAIN: about.get(CHAIN, b"")}
    info = seen.info if seen.kind in KNOWN_FILTERS else 0
    body = queues.address(seen.link, seen.handle, seen.parent, info)
    return body + b"".join(attribute(k, v) for k, v in kept.items() if v)


def _without_counters(seen: LinkQueue) -> bytes:
    if seen.kind == "htb":
        parts = ((k, _VERSION + v[4:-4] + bytes(4) if k == _GLOB else v) for k, v in attributes(seen.options))
        return b"".join(attribute(k, v) for k, v in parts)
    if seen.kind == "u32":
        parts = ((k, struct.pack("=I", number(v) & _SAID) if k == _FLAGS else v) for k, v in attributes(seen.options))
        return b"".join(attribute(k, v) for k, v in parts if k != _COUNTS)
    return seen.options
