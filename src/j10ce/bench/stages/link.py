"""A link of the run's own: this process and all that it starts are in one network namespace, a peer is in a second.

    here ──prove0── switch ──prove1── peer          the switch sends on a gigabit a second, in the order of arrival

So those who send all they can fill the queue of the switch, as they would that of a network card.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from j10ce.bench.crowd.gated import Gated
from j10ce.bench.scratch import Scratch
from j10ce.bench.stages.stage import Scene
from j10ce.bench.stages.wires import Wires, own_namespace
from j10ce.model.kinds import NodeStrategySpec
from j10ce.model.parts.devices import LinkOverlay, LinksSection
from j10ce.model.quantity import Quantity

NEAR, ON = "prove0", "prove1"
HERE, GATE, BEYOND, PEER = "192.0.2.1", "192.0.2.2", "192.0.2.5", "192.0.2.6"
RATE: Final = 125_000_000  # bytes a second
WAITING: Final = 1 << 20  # bytes: 8 ms
SAID: Final = "950Mbit"  # to the agent, so that queues are here and not in the switch
FLOOR: Final = "100Mbit"


@contextmanager
def linked(scratch: Scratch) -> Iterator[Scene]:
    with own_namespace(), Gated("j10ce.bench.crowd.far") as switch, Gated("j10ce.bench.crowd.far") as peer:
        switch.ready()
        peer.ready()
        here, between, there = Wires(), Wires(switch.pid), Wires(peer.pid)
        here.pair(NEAR, switch.pid)
        between.pair(ON, peer.pid)
        here.address(NEAR, HERE)
        between.address(NEAR, GATE)
        between.address(ON, BEYOND)
        there.address(ON, PEER)
        here.way(NEAR, GATE)
        there.way(ON, BEYOND)
        between.forward(NEAR)
        between.forward(ON)
        between.narrow(ON, RATE, WAITING)
        peer.go(PEER)
        peer.ready()
        links = LinksSection(links={NEAR: LinkOverlay(egress=Quantity.parse(SAID))})
        yield Scene(
            PEER, PEER, {"network": FLOOR}, NodeStrategySpec(network=links), used_s=lambda: between.sent(ON) / RATE
        )
