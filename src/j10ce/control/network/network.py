"""`network`: floors, ceilings and turns of traffic on managed links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.network.shaping import Shaped, asks, shaped, taken_over
from j10ce.control.network.traffic import LEAST, door, doors, wishes
from j10ce.model.knob import Setting, link
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement


class Network(Unconfigured):
    """Speaks anew when entitlements, links or strategies change; what is unused in between the kernel lends by itself.

    Where nobody asks for anything of the network it is silent, and links stay as they are.
    """

    name = "network"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        ways, known = shaped(snap), doors(snap)
        for name in taken_over(snap, dict.fromkeys(on.link.name for on in ways)):
            if snap.supports("link.take_over"):
                why = f"network.takeOver of the node's strategy, for {name}"
                yield self._proposal(Setting(link(name), "link.take_over"), Bound.WANT, 1.0, why)
        for on in ways:
            rate = Setting(link(on.link.name), f"link.{on.way}.rate")
            yield self._proposal(rate, Bound.WANT, on.rate, on.why)
            yield from self._traffic(snap, on, known)
        for e in snap.entitlements.values():
            yield from self._at_door(snap, e, door(snap.workloads.get(e.target), known)) if e.chosen else ()

    def _at_door(self, snap: Snapshot, e: Entitlement, name: str) -> Iterator[Proposal]:
        """Its ceilings, whomever it talks to: what comes to it leaves this machine by its door."""
        if not name or snap.node.links[name].managed:
            return
        for way, said in (("egress", e.ingress), ("ingress", e.egress)):
            if said.ceiling < math.inf and snap.supports(f"link.{way}.rate"):
                rate = max(LEAST, said.ceiling)
                why = f"ceiling {spell('network', rate)} of {e.target.removeprefix('workload/')}, whose door it is"
                yield self._proposal(Setting(link(name), f"link.{way}.rate"), Bound.WANT, rate, why)

    def _traffic(self, snap: Snapshot, on: Shaped, known: Mapping[str, str]) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            every = [w for w in wishes(e, on) if snap.supports(w.knob)] if e.chosen else []
            for wish in every:
                yield self._proposal(Setting(e.target, wish.knob, on.link.name), wish.bound, wish.value, wish.reason)
            way_in = door(snap.workloads.get(e.target), known) if e.chosen and on.way == "egress" else ""
            if way_in and (every or asks(e, "ingress")):
                why = f"{way_in} leads to its address: what comes from there is its own"
                yield self._proposal(Setting(e.target, "net.door", on.link.name), Bound.WANT, way_in, why)

    def _proposal(self, setting: Setting, bound: Bound, value: object, why: str) -> Proposal:
        return Proposal(setting, bound, value, self.name, Rank.POLICY, why)  # type: ignore[arg-type]


_: Controller = Network(Network.Config())
