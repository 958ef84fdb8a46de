"""Which links are queued for here, and at which rate: only where somebody asks for something of the network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from msgspec import UNSET

from j10ce.model.machine.link import OPEN, Link
from j10ce.model.parts.devices import LinkOverlay
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Traffic

Way = Literal["egress", "ingress"]
WAYS: Final[tuple[Way, ...]] = ("egress", "ingress")
HEADROOM: Final = 0.01  # of a link's own speed: at less than it the queue is here, at more it is in the device
NO_TRAFFIC: Final = Traffic()
UNSAID: Final = LinkOverlay()


class Shaped(NamedTuple):
    """One direction of one link that is queued for here."""

    link: Link
    way: Way
    rate: float
    why: str
    known: bool = True  # its capacity, so that there is something to divide


def shaped(snap: Snapshot) -> list[Shaped]:
    """In the order of their names; none where nobody asks."""
    chosen = [e for e in snap.entitlements.values() if e.chosen]
    asked = {way for way in WAYS if any(asks(e, way) for e in chosen)}
    if any(w.own_network and asks(e, "ingress") for e in chosen if (w := snap.workloads.get(e.target))):
        asked.add("egress")  # what comes back is known by what has left
    ways = [way for way in WAYS if way in asked and snap.supports(f"link.{way}.rate")]
    managed = sorted((k for k in snap.node.links.values() if k.managed), key=lambda k: k.name)
    return [_shaped(link, way) for link in managed for way in ways]


def asks(e: Entitlement, way: Way) -> bool:
    """A class orders what is sent; only rates are a reason to queue what comes in."""
    return getattr(e, way) != NO_TRAFFIC or (way == "egress" and e.network.class_ is not UNSET)


def taken_over(snap: Snapshot, links: Iterable[str]) -> Iterator[str]:
    """Those of the links whose queueing by others is to be put aside."""
    said = snap.strategy.network
    for name in links:
        own = said.links.get(name, UNSAID).take_over
        if own is True or (own is UNSET and said.take_over is True):
            yield name


def _shaped(link: Link, way: Way) -> Shaped:
    capacity = link.capacity if way == "egress" else link.ingress_capacity
    said = link.said if way == "egress" or link.said_ingress == math.inf else link.said_ingress
    if capacity == math.inf:
        hint = f"say network.links.{link.name}.egress in a NodeStrategy"
        return Shaped(link, way, OPEN, f"{link.name} says no speed, so only ceilings hold there; {hint}", known=False)
    if said < math.inf:
        return Shaped(link, way, float(math.floor(said)), f"an operator says that {link.name} carries {_bits(said)}")
    rate = float(math.floor(capacity * (1 - HEADROOM)))
    return Shaped(
        link, way, rate, f"{link.name} carries {_bits(capacity)}, less {HEADROOM:.0%} so that queues are here"
    )


def _bits(rate: float) -> str:
    return spell("network", rate)
