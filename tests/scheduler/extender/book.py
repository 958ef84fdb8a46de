"""Short ways to say what is on a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from j10ce.model.kinds import Selector
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.scheduler.book.units import Guest, HeldPledge
from j10ce.scheduler.extender.extender import Extender
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers

GIB = 1 << 30


def amount(cpu: float = 0.0, gib: float = 0.0) -> Resources:
    return Resources(Millicores(int(cpu * 1000)), Bytes(int(gib * GIB)))


def policy(
    name: str, shape: Resources, units: Mapping[str, int], *, namespace: str = "shop", lends: bool = False
) -> HeldPledge:
    source = f"MinimalReservationPolicy/{namespace}/{name}"
    return HeldPledge(source, namespace, Selector(match_labels={"app": name}), shape, dict(units), lends)


def pod(
    name: str, request: Resources, *, app: str = "", node: str = "", since: float = 0.0, gives_way: bool = False
) -> Guest:
    labels = {"app": app} if app else {}
    return Guest(f"uid-{name}", "shop", name, labels, request, node, since, gives_way)


def extender(nodes: Mapping[str, Resources], *pledges: HeldPledge) -> Extender:
    made = Occupancy()
    for name, allocatable in nodes.items():
        made.put_node(name, allocatable)
    for pledge in pledges:
        made.put_pledge(pledge)
    return Extender(made, Offers())


def bind(made: Extender, guest: Guest, node: str) -> None:
    """As the watch tells of it."""
    made.occupancy.put_guest(guest._replace(node=node))
    made.offers.end(guest.uid)
