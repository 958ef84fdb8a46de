"""What floors of rates are worth: of traffic on links, of reads and writes on disks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from j10ce.model.knob import Setting, link
from j10ce.model.machine.link import Link
from j10ce.model.resource import RESOURCES, spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Traffic
from j10ce.policy.effect.disk_load import CAPS, DiskLoad
from j10ce.policy.effect.support import missing

FIRST: Final = RESOURCES.index("network")  # from here on resources are rates
SENT: Final = "egress"
SLACK: Final = 0.999  # whole bytes a second are what kernels count in


class EffectiveRate(NamedTuple):
    """What is left of a floor when everyone wants all there is; the reason is empty where it holds."""

    amount: float
    reason: str = ""


Rates: TypeAlias = Mapping[str, EffectiveRate]
NO_RATES: Final[Rates] = MappingProxyType({})


def rates(snap: Snapshot, e: Entitlement, disks: DiskLoad) -> Rates:
    """By resource, of those that were promised."""
    if not any(e.floor[FIRST:]):
        return NO_RATES
    promised = {name: float(n) for name, n in zip(RESOURCES[FIRST:], e.floor[FIRST:], strict=True) if n}
    return {
        name: EffectiveRate(*disks.judge(name, n)) if name in CAPS else _network(snap, e, n)
        for name, n in promised.items()
    }


def _network(snap: Snapshot, e: Entitlement, promised: float) -> EffectiveRate:
    """The worst of all managed links. What comes in is the sender's to slow down: it counts where this machine can."""
    every = [_on_link(snap, e, k, way) for k in snap.node.links.values() if k.managed for way in (SENT, "ingress")]
    shares = [share for one in every for share in one]
    worst = min(shares, key=lambda s: (not s.reason, s.amount), default=EffectiveRate(promised))
    return worst if worst.reason else EffectiveRate(promised)


def _on_link(snap: Snapshot, e: Entitlement, on: Link, way: str) -> Iterator[EffectiveRate]:
    said: Traffic = getattr(e, way)
    if not said.floor:
        return
    whose, knob = snap.workloads.get(e.target), f"net.{way}.floor"
    if not snap.supports(knob):
        if way == SENT:
            yield EffectiveRate(0.0, missing(snap, knob))
        return
    ground = snap.settings.get(Setting(link(on.name), f"link.{way}.rate"), math.inf)
    if not isinstance(ground, float | int) or ground == math.inf:
        yield EffectiveRate(0.0, f"nothing divides {on.name}: its link.{way}.rate is not set")
        return
    if whose is not None and whose.own_network and not snap.settings.get(Setting(e.target, "net.door", on.name)):
        yield EffectiveRate(
            0.0, f"it has a network of its own, and {on.name} does not know by which link that comes in"
        )
        return
    here = snap.settings.get(Setting(e.target, knob, on.name), 0.0)
    has = min(float(here) if isinstance(here, float | int) else 0.0, float(ground))
    short = has < said.floor * SLACK
    yield EffectiveRate(has, f"{knob}[{on.name}] is {spell('network', has)}" if short else "")
