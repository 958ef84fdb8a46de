"""What one workload may send and receive: from sections and limits to bits per second, each direction by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.model.parts.sections import NetworkDirection, NetworkSection
from j10ce.model.quantity import BitsPerSecond, Quantity
from j10ce.model.resource import Resources, spell
from j10ce.model.workload import Traffic
from j10ce.policy.equipment import UNMEASURED

SILENT: Final = NetworkSection()


class Shaping(NamedTuple):
    """What links are to do for one workload."""

    section: NetworkSection = SILENT
    egress: Traffic = Traffic()
    ingress: Traffic = Traffic()


UNSHAPED: Final = Shaping()


class AskedTraffic(NamedTuple):
    """What sections say, before the ledger was asked."""

    egress: Traffic = Traffic()
    ingress: Traffic = Traffic()
    notes: tuple[str, ...] = ()

    @property
    def floor(self) -> Resources:
        """What is charged: floors hold in both directions, so the larger one counts."""
        return Resources(network=BitsPerSecond(math.ceil(max(self.egress.floor, self.ingress.floor))))


def asked(section: NetworkSection, capacity: Resources) -> AskedTraffic:
    if section == SILENT:
        return AskedTraffic()
    whole = capacity.network
    pairs = (("egress", section.egress), ("ingress", section.ingress))
    notes = [note for name, said in pairs for note in _unmeasured(name, _both(section, said), whole)]
    egress, ingress = (_traffic(_both(section, said), whole) for _, said in pairs)
    return AskedTraffic(egress, ingress, tuple(dict.fromkeys(notes)))


def granted(wanted: Traffic, floor: int, others: int, limit: float) -> Traffic:
    """`floor`: what the ledger grants in all; `others`: what of it is not the sections' word and holds both ways."""
    least = float(min(floor, max(others, math.ceil(wanted.floor))))
    return Traffic(least, max(least, min(wanted.ceiling, limit)))


def _both(section: NetworkSection, said: NetworkDirection) -> NetworkDirection:
    """What is said of a direction alone, over what is said of both."""
    floor = section.floor if said.floor is UNSET else said.floor
    ceiling = section.ceiling if said.ceiling is UNSET else said.ceiling
    return NetworkDirection(floor=floor, ceiling=ceiling)


def _traffic(said: NetworkDirection, whole: int) -> Traffic:
    floor = 0.0 if said.floor is UNSET else _amount(said.floor, whole, 0.0)
    return Traffic(floor, math.inf if said.ceiling is UNSET else _amount(said.ceiling, whole, math.inf))


def _amount(said: Quantity, whole: int, unknown: float) -> float:
    return unknown if said.percent and not whole else float(math.ceil(said.of(whole)))


def _unmeasured(name: str, said: NetworkDirection, whole: int) -> Iterator[str]:
    for field, amount in (("floor", said.floor), ("ceiling", said.ceiling)):
        if amount is UNSET:
            continue
        text = amount if amount.percent else spell("network", float(amount.amount))
        if not whole and (amount.percent or field == "floor"):
            yield f"network {field} {text} ({name}) is nothing here: {UNMEASURED['network']}"
        elif field == "floor" and (least := _amount(amount, whole, 0.0)) > whole:
            over = f"{spell('network', least)} ({name}) is more than the slowest managed link has"
            yield f"network floor {over}, {spell('network', whole)}"
