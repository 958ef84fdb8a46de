"""The Scheduler Extender: which of the nodes that kube-scheduler would take leave reserved capacity alone.

Only reservations are its business: a node that holds nothing is never refused. Pure but for its own book of offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from j10ce.model.kinds import Minimum
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.policy.ledger import NAMED_HOLDERS
from j10ce.scheduler.cluster import Amounts, Cluster, Mask, Rows, Scores
from j10ce.scheduler.demand import Demand, Request
from j10ce.scheduler.occupancy import Count, Guest, Occupancy, Stake
from j10ce.scheduler.offers import Offers
from j10ce.scheduler.place import total, weigh

AT_A_TIME: Final = 8  # a pod is offered an eighth of the nodes with units for it: the rest is for those right behind it
MOST_SCORE: Final = 10


class Filtered(NamedTuple):
    fit: Sequence[str]
    failed: Mapping[str, str]  # where it could fit once others are gone
    hopeless: Mapping[str, str]  # where evictions would not help: what is reserved alone leaves no room
    seated: bool = False  # a unit is held for it, on those that fit
    soon: bool = False  # nothing fits for now, but would if pods that were offered nodes took others


class Extender:
    def __init__(self, occupancy: Occupancy) -> None:
        self.occupancy = occupancy
        self.offers = Offers()

    def filter(self, guest: Guest, names: Sequence[str], now: float) -> Filtered:
        """Offers what fits, and charges the pod there. A node that is not known holds nothing."""
        self.offers.expire(now)
        self.offers.end(guest.uid)
        rows = self.occupancy.rows(names)
        if seats := self._seats(guest, rows):
            return self._seated(guest, names, seats, now)
        fits = self._anywhere(guest).take(rows)
        self.offers.make(guest.uid, rows[fits & (rows >= 0)], _vector(guest.request), {}, now)
        if fits.all():
            return Filtered(names, {}, {})
        failed, hopeless = self._refusals(guest, rows[~fits])
        left = list(compress(names, fits.tolist()))
        soon = not left and bool(self._anywhere(guest, offers=False).take(rows).any())
        return Filtered(left, failed, hopeless, soon=soon)

    def prioritize(self, guest: Guest, names: Sequence[str]) -> list[tuple[str, int]]:
        """From 0 to 10, the best with the most. What all have in common decides nothing, so it is left out, and so are
        nodes that have nothing else: the scheduler takes longer to read a score than we to make it."""
        rows = self.occupancy.rows(names)
        totals = self._scores(guest, self._seats(guest, np.arange(len(self.occupancy.names))))
        known_or_none = np.append(totals, 0.0)  # a row of -1 is the last
        points = np.rint(known_or_none[rows] / 100 * MOST_SCORE).astype(np.int64)
        points -= points.min(initial=MOST_SCORE)
        return [(names[n], int(points[n])) for n in np.flatnonzero(points).tolist()]

    def preempt(self, guest: Guest, victims: Mapping[str, Iterable[str]]) -> set[str]:
        """The nodes where the pod may go once the victims are gone: units that they leave stay held."""
        self.offers.end(guest.uid)
        return {node for node, uids in victims.items() if self._helps(guest, node, frozenset(uids))}

    # -- units that are held for the pod

    def _seats(self, guest: Guest, known: Rows) -> dict[int, Stake]:
        """By row: the unit that it would take there."""
        seats: dict[int, Stake] = {}
        offered = set(known.tolist()) if (payers := self.occupancy.payers(guest)) else set()
        for stake in payers:
            rows = [self.occupancy.row[node] for node in stake.units if node in self.occupancy.row]
            free = [r for r in rows if r in offered and r not in seats and self._unused(stake, r) > 0]
            needed = guest.request.at_least(stake.shape)
            fits = self._fits(guest, np.array(free, np.int64), needed, stake.shape)
            seats |= {r: stake for r, fit in zip(free, fits.tolist(), strict=True) if fit}
        return seats

    def _unused(self, stake: Stake, row: int) -> int:
        return self.occupancy.counts[row].unused.get(stake.source, 0) - self._offered(stake, row)

    def _offered(self, stake: Stake, row: int) -> int:
        return self.offers.units(stake.source, row)

    def _seated(self, guest: Guest, names: Sequence[str], seats: Mapping[int, Stake], now: float) -> Filtered:
        totals, all_names = self._scores(guest, seats), self.occupancy.names
        best = sorted(seats, key=lambda r: (-totals[r], all_names[r]))[: max(1, len(seats) // AT_A_TIME)]
        amounts = np.array([guest.request.minus(seats[r].shape) for r in best], np.int64)
        self.offers.make(guest.uid, np.array(best, np.int64), amounts, {r: seats[r].source for r in best}, now)
        fit = {all_names[r] for r in best}
        told = f"a unit of {seats[best[0]].source} is held for it on {' or '.join(sorted(fit)[:NAMED_HOLDERS])}"
        left = [name for name in names if name in fit]
        return Filtered(left, {n: told for n in names if n not in fit}, {}, seated=True)

    # -- room

    def _anywhere(self, guest: Guest, *, offers: bool = True) -> Mask:
        """By row; one more, found as row -1, stands for a node that is not known. Only where something is held is there
        something to look at."""
        holding = np.flatnonzero(self.occupancy.holding)
        fits = np.ones(len(self.occupancy.holding) + 1, np.bool_)
        fits[holding] = self._fits(guest, holding, guest.request, offers=offers)
        return fits

    def _fits(
        self, guest: Guest, rows: Rows, needed: Resources, covered: Resources = NOTHING, *, offers: bool = True
    ) -> Mask:
        book = self.occupancy
        held, taken = book.held.take(rows, 0), book.used.take(rows, 0)
        if guest.gives_way:
            held -= book.lent.take(rows, 0)
        if offers:
            taken += self.offers.charged(len(book.names)).take(rows, 0)
        return _room(taken, held - _vector(covered), _vector(needed), book.allocatable.take(rows, 0))

    def _helps(self, guest: Guest, node: str, victims: frozenset[str]) -> bool:
        row = self.occupancy.row.get(node)
        if row is None:
            return True
        count = self.occupancy.counted(row, victims)
        held = count.held.minus(count.lent) if guest.gives_way else count.held
        taken = _vector(count.used) + self.offers.charged(row + 1)[row]
        units = [s for s in self.occupancy.payers(guest) if count.unused.get(s.source, 0) > self._offered(s, row)]
        ways = [(guest.request, NOTHING), *((guest.request.at_least(s.shape), s.shape) for s in units)]
        whole = self.occupancy.allocatable[row]
        return any(_room(taken, _vector(held) - _vector(own), _vector(need), whole).all() for need, own in ways)

    # -- words

    def _refusals(self, guest: Guest, rows: Rows) -> tuple[dict[str, str], dict[str, str]]:
        """Few different sentences: the scheduler counts equal ones."""
        book, request = self.occupancy, _vector(guest.request)
        held = book.held[rows] - book.lent[rows] if guest.gives_way else book.held[rows]
        alone = ~_room(np.zeros_like(held), held, request, book.allocatable[rows])
        asked = (guest.gives_way, *(n > 0 for n in guest.request))
        told = {row: _words(book.counts[row], asked, guest) for row in rows.tolist()}
        failed = {book.names[row]: told[row] for row in rows[~alone].tolist()}
        return failed, {book.names[row]: told[row] for row in rows[alone].tolist()}

    # -- scores

    def _scores(self, guest: Guest, seats: Mapping[int, Stake]) -> Scores:
        """Of every row."""
        rows = len(self.occupancy.names)
        need, payer = _repeated(guest.request, rows), np.full(rows, -1, np.int64)
        for stake in {s.source: s for s in seats.values()}.values():
            rows_of = [row for row, seat in seats.items() if seat is stake]
            need[rows_of], payer[rows_of] = guest.request.minus(stake.shape), 0
        asked = Request(guest.name, guest.namespace, guest.labels, Minimum())
        return total(weigh(Demand(asked, need, need, np.zeros_like(need), payer), self._cluster(rows)), rows)

    def _cluster(self, rows: int) -> Cluster:
        """As far as scorers look at it."""
        book = self.occupancy
        whole, none, no = book.allocatable[:rows], np.zeros(rows), np.zeros(rows, np.bool_)
        promised = book.used[:rows] + book.held[:rows] + self.offers.charged(rows)
        names, lent = tuple(book.names), book.lent[:rows]
        return Cluster(names, (), whole, whole, promised, lent, none, 0.0, no, no, {}, book.load[:rows], whole, ())


def _words(count: Count, asked: tuple[bool, ...], guest: Guest) -> str:
    known = count.words.get(asked)
    if known is None:
        known = count.words[asked] = _sentence(count, guest)
    return known


def _sentence(count: Count, guest: Guest) -> str:
    held = count.held.minus(count.lent) if guest.gives_way else count.held
    rows = zip(RESOURCES, held, guest.request, strict=True)
    told = ", ".join(f"{name} {spell(name, n)}" for name, n, wanted in rows if n > 0 and wanted > 0)
    holders = sorted(count.unused, key=lambda source: (-count.unused[source], source))[:NAMED_HOLDERS]
    return f"{told} reserved by {', '.join(holders) or 'pods that ask for less than their unit'}"


def _room(taken: Amounts, held: Amounts, needed: Amounts, whole: Amounts) -> Mask:
    """By row. Where nobody holds a part of a resource, it is the scheduler's own business."""
    over = (taken + held + needed > whole) & (held > 0) & (needed > 0)
    return np.asarray(~over.any(axis=-1), np.bool_)


def _vector(amount: Resources) -> Amounts:
    return np.array(amount, np.int64)


def _repeated(amount: Resources, rows: int) -> Amounts:
    return np.tile(_vector(amount), (rows, 1))
