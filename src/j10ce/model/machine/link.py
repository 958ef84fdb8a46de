"""A network interface of this machine, as far as decisions look at it. Rates are bits per second."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

OPEN: Final = 1e12  # what a link of unknown capacity is queued for: ceilings hold, and nothing is divided

PAIRS: Final = ("veth", "netkit")  # kinds of which the other one may be in another network namespace


class Link(Struct, frozen=True):
    name: str
    index: int = 0  # its identity in its network namespace
    speed: float = math.inf  # infinite: not known
    said: float = math.inf  # what an operator says that it carries; infinite: nothing
    managed: bool = False  # traffic is divided there: it has the default route, or an operator named it
    kind: str = ""  # veth, bond, bridge, vlan, …; empty: a device
    mac: str = ""
    mtu: int = 1500
    routes: bool = False  # it has a default route
    beyond: tuple[str, ...] = ()  # addresses at its other end, where that is in a network namespace of somebody's own
    said_ingress: float = math.inf  # the same as `said`, of what comes in, where that is another amount

    @property
    def leads_in(self) -> bool:
        """Into a network namespace of somebody's own, so that nobody reaches this machine by it."""
        return self.kind in PAIRS and not self.routes

    @property
    def capacity(self) -> float:
        """Of what leaves; infinite where nobody knows."""
        return self.said if self.said < math.inf else self.speed

    @property
    def ingress_capacity(self) -> float:
        return self.said_ingress if self.said_ingress < math.inf else self.capacity
