"""What people mean by the words that name objects: `KIND NAME`, `KIND/NAME`, `a,b`, and names that are mistyped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from j10ce.cli.paths import apart, name_of
from j10ce.cli.peers import Peers, find_kind, kinds_for_people
from j10ce.errors import NotFound, QosError
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.text.near import near

# what `get all` lists
ALL: Final = ("QoSProfile", "MinimalReservationPolicy", "NodeStrategy", "NodeQoS", "Workload", "Hold")
LOOK_S: Final = 2.0  # for names that resemble one; the error itself is there already


def kinds_and_names(words: Sequence[str]) -> list[tuple[Kind, str]]:
    """Each object that the words name; a kind without a name has an empty one. Raises Invalid for an unknown kind."""
    if not words:
        raise click.UsageError(f"name a kind, one of {kinds_for_people()}")
    if all("/" in word for word in words):
        pairs = [word.partition("/")[::2] for word in words]
        return [(find_kind(kind), name) for kind, name in pairs]
    first, *names = words
    if first.lower() == "all" and not names:
        return [(KINDS[name], "") for name in ALL]
    kinds = [find_kind(kind) for kind in first.split(",")]
    return [(kind, name) for kind in kinds for name in names or [""]]


@contextmanager
def suggesting(peers: Peers, kind: Kind, namespace: str, name: str) -> Iterator[None]:
    """What is not there is answered with what there is: the same name elsewhere, or a name that resembles it."""
    try:
        yield
    except NotFound as e:
        raise NotFound(f"{e}{_hint(peers, kind, *apart(kind, namespace, name))}") from None


def _hint(peers: Peers, kind: Kind, namespace: str, name: str) -> str:
    try:
        metas = [o["metadata"] for o in peers.listed(kind, LOOK_S)]
    except QosError:
        return ""  # whoever could tell does not answer; that it is not there was said
    elsewhere = [f"{m['namespace']}/{name}" for m in metas if m["name"] == name and m.get("namespace") != namespace]
    if kind.namespaced and elsewhere:
        return f"; there is {', '.join(elsewhere)}"
    here = [m["name"] for m in metas if not kind.namespaced or m.get("namespace") == namespace]
    meant = near(name_of(kind, name), here)
    return f"; did you mean {meant}?" if meant else ""
