"""One node's ledger and the fleet's are ledgers alike."""

from __future__ import annotations

from j10ce.model.kinds import Tier
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.entitlement.ledger import Ledger, Line
from j10ce.scheduler.ledger.fleet import Fleet
from j10ce.scheduler.ledger.pledge import FleetNode, Pledge
from j10ce.testing.conformance_ledger import Book, LedgerConformance


class OneNode(Book):
    def __init__(self, capacity: Resources) -> None:
        self.ledger = Ledger(capacity)

    def reserve(self, holder: str, amount: Resources) -> object | None:
        return self.ledger.reserve(Line(holder, amount, Tier.STANDARD))

    def release(self, holder: str) -> bool:
        return self.ledger.release(holder) is not None

    def resize(self, capacity: Resources) -> None:
        self.ledger = Ledger(capacity, self.ledger)

    def promised(self) -> dict[str, Resources]:
        return {line.holder: line.amount for line in self.ledger}

    def granted(self, holder: str) -> Resources:
        return self.ledger.granted(holder)


class FleetOfOne(Book):
    """Every promise is a policy with one unit."""

    def __init__(self, capacity: Resources) -> None:
        self.fleet = Fleet(limit_percent=100)
        self.resize(capacity)

    def reserve(self, holder: str, amount: Resources) -> object | None:
        return self.fleet.admit(Pledge(holder, "default", amount, 1))

    def release(self, holder: str) -> bool:
        return self.fleet.release(holder) is not None

    def resize(self, capacity: Resources) -> None:
        self.fleet.update([FleetNode("n", capacity)])

    def promised(self) -> dict[str, Resources]:
        return {pledge.source: pledge.shape for pledge in self.fleet}

    def granted(self, holder: str) -> Resources:
        if holder not in self.fleet or self.fleet.standing(holder).missing:
            return NOTHING
        return self.fleet.pledge(holder).shape


class TestLedger(LedgerConformance):
    def make(self, capacity: Resources) -> Book:
        return OneNode(capacity)


class TestFleet(LedgerConformance):
    def make(self, capacity: Resources) -> Book:
        return FleetOfOne(capacity)
