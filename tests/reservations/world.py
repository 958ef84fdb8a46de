"""A small fleet in which anything may happen: nodes, policies and workloads, and agents that grant floors.

The world is the truth; the fleet's ledger sees only what agents report. `check` holds it to its promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import NOTHING, Resources
from j10ce.scheduler.ledger.fleet import Fleet
from j10ce.scheduler.ledger.pledge import Charge, FleetNode, Pledge, PledgeRefusal, Standing

Units = dict[str, dict[str, int]]


def amount(cpu: int, memory: int) -> Resources:
    return Resources(Millicores(cpu), Bytes(memory))


def source(namespace: str, name: str) -> str:
    return f"MinimalReservationPolicy/{namespace}/{name}"


@dataclass
class Machine:
    capacity: Resources
    zone: str
    cordoned: bool = False
    lost: bool = False


@dataclass
class Running:
    node: str
    namespace: str
    asked: Resources
    payer: str = ""  # a policy's source
    floor: Resources = NOTHING  # granted; nothing: it waits for one


@dataclass
class World:
    limit_percent: int = 100
    budget: int = 50_000
    wall: float = 0.0
    machines: dict[str, Machine] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    zones: dict[str, str] = field(default_factory=dict)  # where a policy wants its units; empty: anywhere
    ends: dict[str, float] = field(default_factory=dict)  # when a policy does
    refusals: list[tuple[Pledge, PledgeRefusal]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = Fleet(limit_percent=self.limit_percent, budget=self.budget)
        self._names = count()
        self._before: Units = {}

    # -- nodes

    def set_machine(self, name: str, **fields: object) -> None:
        old = self.machines.get(name)
        self.machines[name] = Machine(**{**(vars(old) if old else {}), **fields})  # type: ignore[arg-type]
        self.report(name)

    def remove_machine(self, name: str) -> None:
        del self.machines[name]
        self.running = {k: r for k, r in self.running.items() if r.node != name}
        self.fleet.update(gone=[name])

    def node(self, name: str) -> FleetNode:
        machine = self.machines[name]
        labels = {"zone": machine.zone}
        if machine.lost:
            return FleetNode(name, NOTHING, labels, open=False)
        here = [r for r in self.running.values() if r.node == name]
        claimed: dict[str, Resources] = {}
        charged: dict[str, Charge] = {}
        for r in here:
            granted = any(r.floor)
            if granted:
                claimed[r.namespace] = claimed.get(r.namespace, NOTHING).plus(r.floor)
            if r.payer:
                old = charged.get(r.payer, Charge(0, NOTHING))
                charged[r.payer] = Charge(
                    old.workloads + granted, old.amount.plus(r.floor), old.waiting + (not granted)
                )
        return FleetNode(name, machine.capacity, labels, not machine.cordoned, claimed, charged)

    def report(self, *names: str) -> None:
        """The agents of these nodes tell what there is, and grant what the answer allows."""
        self.fleet.update([self.node(name) for name in names])
        for name in names:
            if self._grant(name):
                self.fleet.update([self.node(name)])

    # -- policies

    def put(
        self, namespace: str, name: str, shape: Resources, units: int, *, zone: str = "", ttl: float | None = None
    ) -> PledgeRefusal | None:
        """Create or edit a policy. As the ledger decides; a refusal must leave everything as it was."""
        key = source(namespace, name)
        created = next((p.created for p in self.fleet if p.source == key), float(next(self._names)))
        test = (lambda labels: labels.get("zone") == zone) if zone else None
        pledge = Pledge(key, namespace, shape, units, created, test)
        before, pledges = self.units(), list(self.fleet)
        refusal = self.fleet.admit(pledge)
        if refusal is not None:
            assert (self.units(), list(self.fleet)) == (before, pledges)
            assert str(refusal)
            self.refusals.append((pledge, refusal))
        else:
            self.zones[key], self.ends[key] = zone, math.inf if ttl is None else self.wall + ttl
            self.report(*self.machines)
        return refusal

    def release(self, key: str) -> None:
        for r in self.running.values():  # its agents drop the floors that it paid for
            if r.payer == key:
                r.payer, r.floor = "", NOTHING
        self.fleet.release(key)
        self.report(*self.machines)

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        for key in [p.source for p in self.fleet if self.ends[p.source] <= self.wall]:
            self.release(key)

    # -- workloads

    def arrive(self, node: str, namespace: str, *, payer: str = "", asked: Resources = NOTHING) -> str:
        """Somebody starts a workload, wherever they like."""
        name = f"w{next(self._names)}"
        self.running[name] = Running(node, namespace, asked, payer)
        self.report(node)
        return name

    def leave(self, name: str) -> None:
        node = self.running.pop(name).node
        self.report(node)

    def overdrawn(self) -> bool:
        """Some node has shrunk below what runs there: whose unit that is may change with every arrival."""
        return bool((self.fleet.layout.base < 0).any())

    def charged(self, key: str) -> int:
        return sum(r.payer == key and any(r.floor) for r in self.running.values())

    def _grant(self, name: str) -> bool:
        """What an agent does: a floor from a unit that is held here, or from what is free."""
        machine, done = self.machines[name], False
        if machine.lost:
            return False
        shapes = {p.source: p.shape for p in self.fleet}
        room, units = self.fleet.free(name), {s: self.fleet.standing(s).unused.get(name, 0) for s in shapes}
        for r in (r for r in self.running.values() if r.node == name and not any(r.floor)):
            wanted = shapes.get(r.payer, NOTHING) if r.payer else r.asked
            if units.get(r.payer, 0) > 0:
                units[r.payer] -= 1
            elif any(wanted) and wanted.fits(room):
                room = room.minus(wanted)
            else:
                continue
            r.floor, done = wanted, True
        return done

    # -- what has to hold

    def units(self) -> dict[str, Standing]:
        return {p.source: self.fleet.standing(p.source) for p in self.fleet}

    def check(self) -> None:
        standings = self.units()
        for pledge in self.fleet:
            self._check_count(pledge, standings[pledge.source])
        for name in self.machines:
            self._check_node(name, standings)
        self._check_seniority(standings)
        self._before = {key: dict(s.unused) for key, s in standings.items()}

    def _check_count(self, pledge: Pledge, s: Standing) -> None:
        """No unit is lost: it is used, or somewhere unused, or reported missing."""
        assert s.missing >= 0
        assert sum(s.used.values()) + sum(s.unused.values()) + s.missing == pledge.units
        for name, units in s.used.items():
            here = [r for r in self.running.values() if r.node == name and r.payer == pledge.source and any(r.floor)]
            assert 0 < units <= len(here)
            assert self.zones[pledge.source] in ("", self.machines[name].zone)
        for name, units in s.unused.items():
            machine = self.machines[name]
            assert units > 0
            assert not machine.lost
            assert self.zones[pledge.source] in ("", machine.zone)
            if machine.cordoned:
                assert units <= self._before.get(pledge.source, {}).get(name, 0)

    def _check_node(self, name: str, standings: dict[str, Standing]) -> None:
        """Nothing is sold twice: what is held unused fits next to all that runs."""
        held = self._held(name, standings, {p.source: p for p in self.fleet})
        claims = self._claims(name)
        for n, units in enumerate(held):
            assert not units or claims[n] + units <= self.machines[name].capacity[n]

    def _check_seniority(self, standings: dict[str, Standing]) -> None:
        """Nobody lacks a unit while someone later holds the place for it."""
        pledges = list(self.fleet)
        for n, pledge in enumerate(pledges):
            if not standings[pledge.source].missing:
                continue
            earlier = {p.source: p for p in pledges[: n + 1]}
            for name, machine in self.machines.items():
                if machine.lost or machine.cordoned or self.zones[pledge.source] not in ("", machine.zone):
                    continue
                taken = self._claims(name).plus(self._held(name, standings, earlier))
                left = [c - t for c, t in zip(machine.capacity, taken, strict=True)]
                assert any(want > has for want, has in zip(pledge.shape, left, strict=True) if want)

    def _held(self, name: str, standings: dict[str, Standing], pledges: dict[str, Pledge]) -> Resources:
        total = NOTHING
        for key, pledge in pledges.items():
            units = standings[key].unused.get(name, 0)
            total = total.plus(Resources._make(n * units for n in pledge.shape))
        return total

    def _claims(self, name: str) -> Resources:
        """What runs there; each workload of a policy at least at its shape, as far as units go and may be there."""
        total = NOTHING
        node = self.node(name)
        for granted in node.claimed.values():
            total = total.plus(granted)
        for pledge in self.fleet:
            charge, there = node.charged.get(pledge.source), self.zones[pledge.source] in ("", self.machines[name].zone)
            if charge is not None and there:
                full = Resources._make(n * min(charge.workloads, pledge.units) for n in pledge.shape)
                total = total.plus(full.minus(charge.amount))
        return total

    # -- from objects alone

    def rebuilt(self, order: Iterable[int] = ()) -> Fleet:
        """The ledger that another manager makes of the same objects."""
        fleet = Fleet(limit_percent=self.limit_percent, budget=self.budget)
        nodes = [self.node(name) for name in self.machines]
        pledges = list(self.fleet)
        for n in order:
            nodes.append(nodes.pop(n % len(nodes))) if nodes else None
            pledges.append(pledges.pop(n % len(pledges))) if pledges else None
        fleet.update(nodes)
        for pledge in pledges:
            s = self.fleet.standing(pledge.source)
            witness = {name: s.used.get(name, 0) + s.unused.get(name, 0) for name in {**s.used, **s.unused}}
            fleet.carry(pledge, witness)
        fleet.update()
        return fleet
