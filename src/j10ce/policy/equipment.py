"""Links and disks of a node as decisions look at them: what the machine says, and an operator's word over it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.model.machine.disk import Disk
from j10ce.model.machine.facts import NodeFacts
from j10ce.model.machine.link import Link
from j10ce.model.parts.devices import DiskOverlay, DisksSection, LinkOverlay, LinksSection
from j10ce.model.parts.strategy import Strategy
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell

UNSAID: Final = DiskOverlay()


class NoMeasure(NamedTuple):
    """Why nothing of a resource can be promised, and no percentage of it is an amount, and what changes that."""

    problem: str
    hint: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.hint}"


_NO_DISK: Final = "no managed disk is calibrated"
UNMEASURED: Final[Mapping[str, NoMeasure]] = {
    "network": NoMeasure(
        "no managed link has a known capacity", "say what it carries: network.links.NAME.egress in a NodeStrategy"
    ),
    "diskRead": NoMeasure(_NO_DISK, "`j10ce-qos calibrate DEVICE`, or io.disks.NAME.readBps in a NodeStrategy"),
    "diskWrite": NoMeasure(_NO_DISK, "`j10ce-qos calibrate DEVICE`, or io.disks.NAME.writeBps in a NodeStrategy"),
}


def equipped(facts: NodeFacts, strategy: Strategy) -> NodeFacts:
    """The same object where nothing is said of what is there."""
    said = strategy.network
    links = {name: _slowed(_link(link, said.links.get(name)), said) for name, link in facts.links.items()}
    disks = {number: _disk(disk, _said(disk, strategy.io)) for number, disk in facts.disks.items()}
    same = links == facts.links and disks == facts.disks
    return facts if same else replace(facts, links=links, disks=disks)


def unmeasured(facts: NodeFacts, strategy: Strategy) -> Iterator[str]:
    """What is said of a link in percent while nobody knows the whole."""
    for name, said in strategy.network.links.items():
        link = facts.links.get(name)
        for direction, amount in (("egress", said.egress), ("ingress", said.ingress)):
            if link is not None and amount is not UNSET and amount.percent and link.speed == math.inf:
                hint = f"{name} does not say its speed, so {amount} of it is no amount; write it as 1Gbit"
                yield f"network.links.{name}.{direction}: {hint}"


def _link(link: Link, said: LinkOverlay | None) -> Link:
    """Whoever speaks of a link wants it managed, unless he says that he does not."""
    if said is None:
        return link
    managed = said.managed if said.managed is not UNSET else True
    egress, ingress = _rate(said.egress, link.speed), _rate(said.ingress, link.speed)
    return replace(link, managed=managed, said=egress, said_ingress=ingress)


def _slowed(link: Link, said: LinksSection) -> Link:
    """Headroom that an operator asks for is his word about the link, too."""
    if said.headroom_percent is UNSET or link.speed == math.inf:
        return link
    own = math.floor(link.speed * (100 - said.headroom_percent) / 100)
    return replace(link, said=float(own) if link.said == math.inf else link.said)


def _rate(said: Quantity | UnsetType, speed: float) -> float:
    """Infinite where it is not said, or in percent of what nobody knows."""
    if said is UNSET or (said.percent and speed == math.inf):
        return math.inf
    return float(said.of(speed)) if said.percent else float(said.amount)


def _said(disk: Disk, said: DisksSection) -> DiskOverlay:
    """By its number before its name before its serial."""
    names = (name for name in (disk.number, disk.name, disk.serial) if name)
    return next((said.disks[name] for name in names if name in said.disks), UNSAID)


def _disk(disk: Disk, said: DiskOverlay) -> Disk:
    if said == UNSAID:
        return disk
    return replace(
        disk,
        managed=True if said.managed is UNSET else said.managed,
        read_bps=disk.read_bps if said.read_bps is UNSET else int(said.read_bps.amount),
        write_bps=disk.write_bps if said.write_bps is UNSET else int(said.write_bps.amount),
        read_iops=disk.read_iops if said.read_iops is UNSET else said.read_iops,
        write_iops=disk.write_iops if said.write_iops is UNSET else said.write_iops,
    )


def listed(links: Iterable[Link], divided: Mapping[str, str] = MappingProxyType({})) -> list[dict[str, Any]]:
    """As `doctor network` shows them. `divided`: by name, what is in force there."""
    return [
        {
            "name": k.name,
            "kind": k.kind or "device",
            "capacity": described(k),
            "managed": k.managed,
            "divided": divided.get(k.name, "no"),
        }
        for k in sorted(links, key=lambda k: k.name)
    ]


def described(link: Link) -> str:
    """Where its capacity comes from, for people."""
    if link.said < math.inf:
        return f"{spell('network', link.said)} as an operator says"
    return f"{spell('network', link.speed)} by its own speed" if link.speed < math.inf else "no known speed"
