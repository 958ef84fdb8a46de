"""What each workload has on a link that is queued for: a floor, a ceiling, its turn among the others, and its door."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from j10ce.control.network.levels import COMMON, level, why
from j10ce.control.network.shaping import Shaped
from j10ce.model.knob import Value
from j10ce.model.plan import Bound
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Traffic, Workload

LEAST: Final = 64_000.0  # bits a second: what kernels can still time


class TrafficWish(NamedTuple):
    knob: str
    bound: Bound
    value: Value
    reason: str


def wishes(e: Entitlement, on: Shaped) -> Iterator[TrafficWish]:
    """None for what is as it would be without us."""
    said: Traffic = getattr(e, on.way)
    of = f"of {on.link.name}'s {spell('network', on.rate)}" if on.known else f"on {on.link.name}"
    if on.known and said.floor:
        floor = max(LEAST, said.floor)
        text = f"floor {spell('network', floor)} {of}, by {_source(e)}"
        yield TrafficWish(f"net.{on.way}.floor", Bound.AT_LEAST, floor, text)
    if said.ceiling < on.rate:
        ceiling = max(LEAST, said.ceiling)
        text = f"ceiling {spell('network', ceiling)} {of}"
        yield TrafficWish(f"net.{on.way}.ceil", Bound.WANT, ceiling, text)
        yield TrafficWish(f"net.{on.way}.ceil", Bound.AT_MOST, ceiling, text)
    if on.known and (turn := level(e)) != COMMON:
        reason = f"{why(e)}: level {turn} of 0 to 7 when more is wanted than {on.link.name} carries"
        yield TrafficWish(f"net.{on.way}.priority", Bound.WANT, float(turn), reason)


def doors(snap: Snapshot) -> Mapping[str, str]:
    """By address of a network of somebody's own: the link by which it reaches this machine.

    An address at two ends is at neither: whoever rules a network of their own gives itself any address there.
    """
    every = [(address, on.name) for on in snap.node.links.values() for address in {*on.beyond}]
    often = Counter(address for address, _ in every)
    return {address: name for address, name in every if often[address] == 1}


def door(w: Workload | None, known: Mapping[str, str]) -> str:
    """Empty: its packets have sockets here, or nobody knows by which link they come."""
    own = w.addresses if w is not None and w.own_network else ()
    return next((known[address] for address in own if address in known), "")


def _source(e: Entitlement) -> str:
    return next((s.object for s in e.sources if s.field == "floor.network"), f"profile {e.profile}")
