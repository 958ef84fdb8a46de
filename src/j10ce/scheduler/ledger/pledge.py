"""What the fleet's ledger works with: nodes as they report themselves, policies as what they pledge, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.model.kinds import Minimum
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.model.text.words import counted
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.payer import measured
from j10ce.policy.select import Test, everything

NAMESPACE_LIMIT: Final = 25  # percent of the fleet that one namespace may reserve


class Charge(NamedTuple):
    """The workloads on one node that one policy pays for."""

    workloads: int
    amount: Resources  # that they are promised together
    waiting: int = 0  # that match, and were refused the floor


class FleetNode(NamedTuple):
    name: str
    capacity: Resources  # that may be promised; nothing while the node is lost
    labels: Mapping[str, str] = {}
    open: bool = True  # takes units; a cordoned node keeps what it has
    claimed: Mapping[str, Resources] = {}  # by namespace: promised to the workloads that run there
    charged: Mapping[str, Charge] = {}  # by policy: the part of it that policies pay
    best_effort: Resources = NOTHING  # in use by workloads that give way
    occupied: Mapping[str, Resources] = {}  # by namespace: what workloads have on top that nobody promised them

    def believed(self) -> Mapping[str, Resources]:
        """Its claims as they count in the fleet: together no more than it has, shared out by claim."""
        total = NOTHING
        for amount in self.claimed.values():
            total = total.plus(amount)
        if total.fits(self.capacity):
            return self.claimed
        shares = [*zip(self.capacity.at_most(total), total, strict=True)]
        return {
            namespace: Resources._make(n * has // of if of else 0 for n, (has, of) in zip(amount, shares, strict=True))
            for namespace, amount in self.claimed.items()
        }


class Pledge(NamedTuple):
    """One policy: `units` of `shape`, held on nodes that `test` accepts, and a floor for `workloads`."""

    source: str
    namespace: str
    shape: Resources
    units: int
    created: float = 0.0
    test: Test | None = None  # None: every node
    within_s: float | None = None  # unused units are lent, and back after so long; None: not lent
    workloads: Test = everything  # of its namespace
    minimum: Minimum = Minimum()  # of each of them

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether its units may be on a node with these labels, used or not."""
        return self.test is None or self.test(labels)

    def floor(self, capacity: Resources) -> Resources:
        """Of one workload, on a node that has so much."""
        return measured(amounts(self.minimum, capacity), capacity)

    @property
    def seniority(self) -> tuple[float, str]:
        """Who comes first keeps first."""
        return self.created, self.source


class Standing(NamedTuple):
    """How a pledge is kept: units by node. What is in neither has no place."""

    used: Mapping[str, int]
    unused: Mapping[str, int]
    missing: int


Reason: TypeAlias = Literal["NoRoom", "NamespaceLimit", "Owed"]


class Lack(NamedTuple):
    """Why the closest node does not take a unit more."""

    node: str
    wanted: Resources
    free: Resources
    capacity: Resources
    largest: Resources  # of each resource, the most that is free on one node

    def __str__(self) -> str:
        return f"{self.node} comes closest: " + ", ".join(self._lacks())

    def _lacks(self) -> Iterator[str]:
        every = zip(RESOURCES, self.wanted, self.free, self.capacity, self.largest, strict=True)
        for name, want, free, whole, largest in every:
            if want > free:
                elsewhere = f" (at most {spell(name, largest)} on a node)" if largest > free else ""
                yield f"{name} {spell(name, want)} wanted, {spell(name, free)} free of {spell(name, whole)}{elsewhere}"


class PledgeRefusal(NamedTuple):
    """Why a pledge was not admitted, in numbers."""

    reason: Reason
    shape: Resources
    units: int  # wanted, those in use aside
    fitting: int  # of them, without moving anyone
    nodes: int  # that may take them
    lack: Lack | None = None
    held_by: tuple[tuple[str, str, int], ...] = ()  # (holder, resource, amount), the largest of each scarce resource
    proven: bool = False  # that no arrangement of all units exists
    because: str = ""  # when it is not the room that lacks

    def __str__(self) -> str:
        if self.because:
            return self.because
        parts = [
            f"{counted(self.units, 'unit')} of {self.shape} wanted, {self.fitting} fit on {counted(self.nodes, 'node')}"
        ]
        if self.lack:
            parts.append(str(self.lack))
        if self.held_by:
            held = (f"{holder} {name} {spell(name, amount)}" for holder, name, amount in self.held_by)
            parts.append("held by " + ", ".join(held))
        parts.append("no arrangement of all units exists" if self.proven else "no arrangement of all units was found")
        return "; ".join(parts)
