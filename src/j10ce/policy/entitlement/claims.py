"""Claims on a node's ledger: who asks for which floor since when, and how each is served.

A policy's units are held before its workloads ask. A workload is paid for once, by whoever `policy.payer` ranks first;
standing on one of that policy's units costs nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from j10ce.model.kinds import Tier
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.entitlement.ledger import Ledger, Line, PromiseRefusal
from j10ce.policy.payer import Rank
from j10ce.policy.select import Test


class Promise(NamedTuple):
    """A MinimalReservationPolicy made ready for one node."""

    source: str
    namespace: str
    test: Test
    shape: Resources
    rank: Rank
    units: int
    created: float
    until: float
    notes: tuple[str, ...] = ()
    limited: bool = False  # its namespace reserves as much as it may: no floors beyond units

    def held(self, units: int) -> Line:
        """The line for units that nobody uses. They are the first to be cut."""
        amount = Resources._make(n * units for n in self.shape)
        return Line(self.source, amount, Tier.BESTEFFORT, self.source, units)


class Claim(NamedTuple):
    """One wish for a floor, its fields in order of precedence: the earliest first, a workload's largest first."""

    since: float
    holder: str
    rank: Rank
    source: str
    amount: Resources
    tier: Tier


Refusals: TypeAlias = dict[tuple[str, str], PromiseRefusal]  # by holder and source


class Book:
    """Serves claims; each step only adds, so what is served first does not depend on what comes later."""

    def __init__(self, ledger: Ledger, promises: Iterable[Promise]) -> None:
        self.ledger = ledger
        self.promises = {p.source: p for p in promises}
        self._charge: dict[str, Claim] = {}  # who pays for each workload

    def keep(self, before: Ledger, claims: Mapping[str, Sequence[Claim]]) -> None:
        """Carry over what was promised and is still wanted, also where the machine has shrunk below it."""
        used: Counter[str] = Counter()
        for line in sorted(before, key=lambda line: -line.units):  # who has a unit keeps it, others follow
            if asked := claims.get(line.holder):
                self._keep_floor(line, asked, used)
        for promise in self.promises.values():
            old = before.get(promise.source)
            if old is not None and promise.shape.fits(Resources._make(n // old.units for n in old.amount)):
                self.ledger.carry(promise.held(min(old.units, promise.units - used[promise.source])))

    def forget(self, holder: str) -> None:
        """Free what a workload has; a unit that it stands on is held for the next."""
        line = self.ledger.release(holder)
        for unit in self._giving_back(line):
            self.ledger.carry(unit)

    def serve(self, claims: Mapping[str, Sequence[Claim]]) -> Refusals:
        """All claims, the earliest first, and every policy's units before its workloads."""
        every = self.promises.values()
        units = [Claim(p.created, "", (0.0, p.source), p.source, NOTHING, Tier.BESTEFFORT) for p in every]
        return self._in_turn([*units, *(c for asked in claims.values() for c in asked)])

    def serve_late(self, claims: Mapping[str, Sequence[Claim]]) -> Refusals:
        """Claims of those who came after everyone else. Units had their turn, also those that found no room then."""
        return self._in_turn([c for asked in claims.values() for c in asked])

    def _in_turn(self, claims: Sequence[Claim]) -> Refusals:
        """Refused ones are tried again when their holder got something (it may stand on a unit now, and need only the
        rest), and all of them when room was freed: what was held as a unit and had as a floor is had once."""
        refusals: Refusals = {}
        refused: list[Claim] = []
        for claim in sorted(claims):
            before = self.ledger.promised
            if (refusal := self._try(claim)) is not None:
                refusals[claim.holder, claim.source] = refusal
                refused.append(claim)
                continue
            freed = not before.fits(self.ledger.promised)
            for again in [c for c in refused if freed or (c.holder and c.holder == claim.holder)]:
                if self._try(again) is None:
                    refused.remove(again)
                    del refusals[again.holder, again.source]
        return refusals

    def _try(self, claim: Claim) -> PromiseRefusal | None:
        return self._serve(claim) if claim.holder else self._hold_units(self.promises[claim.source])

    def _keep_floor(self, line: Line, asked: Sequence[Claim], used: Counter[str]) -> None:
        wanted = NOTHING
        for claim in asked:
            wanted = wanted.at_least(claim.amount)
        payer = next((c for c in asked if c.source == line.charged), min(asked, key=lambda c: c.rank))
        promise = self.promises.get(payer.source)
        units = 0
        if promise is not None and promise.shape.fits(line.amount):  # a unit of its payer's is not held beside it
            units = int(used[payer.source] < promise.units)
        used[payer.source] += units
        self._charge[line.holder] = payer
        self.ledger.carry(Line(line.holder, line.amount.at_most(wanted), payer.tier, payer.source, units))

    def _hold_units(self, promise: Promise) -> PromiseRefusal | None:
        """As many whole units as fit; the refusal tells what the first one beyond lacks."""
        held = self._unused(promise.source)
        missing = promise.units - self._used(promise.source) - held
        if missing <= 0:
            return None
        fitting = min(free // n for free, n in zip(self.ledger.free, promise.shape, strict=True) if n)
        held += min(missing, fitting)
        self.ledger.reserve(promise.held(held))
        return self.ledger.reserve(promise.held(held + 1)) if fitting < missing else None

    def _used(self, source: str) -> int:
        return sum(line.units for line in self.ledger if line.charged == source and line.holder != source)

    def _unused(self, source: str) -> int:
        line = self.ledger.get(source)
        return line.units if line else 0

    def _serve(self, claim: Claim) -> PromiseRefusal | None:
        refusal: PromiseRefusal | None = self._limited(claim)
        line = self.ledger.get(claim.holder)
        if line is not None and claim.amount.fits(line.amount) and not self._outranks(claim):
            return None
        for lines in self._ways(claim, line):
            refusal = self.ledger.exchange(*lines)
            if refusal is None:
                if lines[0].charged == claim.source:
                    self._charge[claim.holder] = claim
                return None
        return refusal

    def _ways(self, claim: Claim, line: Line | None) -> Iterator[tuple[Line, ...]]:
        """How a claim can be served, the best way first; each is a set of lines to be written together."""
        amount = claim.amount if line is None else line.amount.at_least(claim.amount)
        own = Line(claim.holder, amount, claim.tier, claim.source)
        unit, limited = self._with_unit(own), self._limited(claim) is not None
        if line is None or self._outranks(claim):
            back = self._giving_back(line)
            if unit:
                yield (*unit, *back)
            if not limited:
                yield (own, *back)
        if line is not None:
            on_unit = [unit] if unit and not line.units else []
            alone = [] if limited else [(line._replace(amount=amount),)]
            yield from (*on_unit, *alone) if line.charged == claim.source else (*alone, *on_unit)

    def _limited(self, claim: Claim) -> PromiseRefusal | None:
        """Why a claim is served from a unit or not at all."""
        promise = self.promises.get(claim.source)
        if promise is None or not promise.limited:
            return None
        because = f"namespace {promise.namespace} reserves as much of the fleet as it may, and no unit is free here"
        return PromiseRefusal(claim.amount, self.ledger.free, self.ledger.capacity, (), because)

    def _outranks(self, claim: Claim) -> bool:
        """Whether the claim's source should pay instead of the one that does."""
        return claim.rank < self._charge[claim.holder].rank

    def _with_unit(self, own: Line) -> tuple[Line, ...]:
        """On a unit that is held; else on one that found no room to be held, and is had with the floor itself."""
        promise = self.promises.get(own.charged)
        if promise is None or not promise.units:
            return ()
        if unused := self._unused(own.charged):
            return own._replace(units=1), promise.held(unused - 1)
        return (own._replace(units=1),) if self._used(own.charged) < promise.units else ()

    def _giving_back(self, line: Line | None) -> tuple[Line, ...]:
        """The unit goes to one of the policy's that has none, else it is held for the next."""
        if line is None or not line.units or line.charged not in self.promises:  # its policy may be gone
            return ()
        promise = self.promises[line.charged]
        without = (x for x in self.ledger if x.charged == line.charged and not x.units and x.holder != line.holder)
        heir = min((x for x in without if promise.shape.fits(x.amount)), default=None)
        return (heir._replace(units=1) if heir else promise.held(self._unused(line.charged) + 1),)
