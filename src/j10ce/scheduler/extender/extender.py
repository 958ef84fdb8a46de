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
from j10ce.policy.entitlement.ledger import NAMED_HOLDERS
from j10ce.scheduler.book.units import Count, Guest, HeldPledge, room_beside
from j10ce.scheduler.cluster import Amounts, Cluster, Mask, Rows, Scores, share_of
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.scheduler.place.demand import Demand, Request
from j10ce.scheduler.place.place import total, weigh

AT_A_TIME: Final = 8  # a pod is offered an eighth of the nodes with units for it: the rest is for those right behind it
MOST_SCORE: Final = 10
NATIVE: Final = 2  # resources that nodes of Kubernetes say they have: cpu and memory, the first two


class Filtered(NamedTuple):
    fit: Sequence[str]
    rows: Rows  # of those
    failed: Mapping[str, str]  # where it could fit once others are gone
    hopeless: Mapping[str, str]  # where evictions would not help: what is reserved alone leaves no room
    seated: bool = False  # a unit is held for it, on those that fit
    soon: bool = False  # nothing fits for now, but would if pods that were offered nodes took others


class Extender:
    def __init__(self, occupancy: Occupancy, offers: Offers) -> None:
        self.occupancy, self.offers = occupancy, offers

    def filter(self, guest: Guest, names: Sequence[str], now: float) -> Filtered:
        """Offers what fits, and charges the pod there. A node that is not known holds nothing."""
        self.offers.expire(now)
        self.offers.end(guest.uid)
        rows = self.occupancy.rows(names)
        if seats := self._seats(guest, rows):
            return self._seated(guest, names, seats, now)
        fits = self._anywhere(guest, self._taken).take(rows)
        self.offers.make(guest.uid, rows[fits & (rows >= 0)], _vector(guest.request), {}, now)
        if fits.all():
            return Filtered(names, rows, {}, {})
        failed, hopeless = self._refusals(guest, rows[~fits])
        left = list(compress(names, fits.tolist()))
        soon = not left and bool(self._anywhere(guest, (self.occupancy.used,)).take(rows).any())
        return Filtered(left, rows[fits], failed, hopeless, soon=soon)

    def prioritize(self, guest: Guest, names: Sequence[str], rows: Rows | None = None) -> list[tuple[str, int]]:
        """How much better than the worst, up to ten. What all have in common decides nothing, so it is left out, and so
        are nodes that have nothing else: the scheduler takes longer to read a score than we to make it."""
        rows = self.occupancy.rows(names) if rows is None else rows
        if not len(rows):
            return []
        totals = self._scores(guest, self._seats(guest, np.arange(len(self.occupancy.names))))
        known_or_none = np.append(totals, 0.0)  # a row of -1 is the last
        points = np.rint(known_or_none[rows] / 100 * MOST_SCORE).astype(np.int64)
        points -= points.min()
        return [(name, score) for name, score in zip(names, points.tolist(), strict=True) if score]

    def preempt(self, guest: Guest, victims: Mapping[str, Iterable[str]]) -> set[str]:
        """The nodes where the pod may go once the victims are gone: units that they leave stay held."""
        self.offers.end(guest.uid)
        return {node for node, uids in victims.items() if self._helps(guest, node, frozenset(uids))}

    # -- units that are held for the pod

    def _seats(self, guest: Guest, known: Rows) -> dict[int, HeldPledge]:
        """By row: the unit that it would take there."""
        book, ways = self.occupancy, dict[int, list[HeldPledge]]()
        offered = set(known.tolist()) if (matching := book.units.matching(guest)) else set()
        for pledge in matching:
            rows = [book.row[node] for node in pledge.units if node in book.row]
            free = [r for r in rows if r in offered and self._unused(pledge, r) > 0]
            needed = guest.request.at_least(pledge.shape)
            fits = self._fits(guest, np.array(free, np.int64), needed, self._taken, pledge.shape)
            for row, fit in zip(free, fits.tolist(), strict=True):
                if fit:
                    ways.setdefault(row, []).append(pledge)
        return {row: payer for row, pledges in ways.items() if (payer := book.units.payer(row, pledges)) is not None}

    def _unused(self, pledge: HeldPledge, row: int) -> int:
        return self.occupancy.counts[row].unused.get(pledge.source, 0) - self._offered(pledge, row)

    def _offered(self, pledge: HeldPledge, row: int) -> int:
        return self.offers.units(pledge.source, row)

    def _seated(self, guest: Guest, names: Sequence[str], seats: Mapping[int, HeldPledge], now: float) -> Filtered:
        totals, all_names = self._scores(guest, seats), self.occupancy.names
        best = sorted(seats, key=lambda r: (-totals[r], all_names[r]))[: max(1, len(seats) // AT_A_TIME)]
        amounts = np.array([guest.request.minus(seats[r].shape) for r in best], np.int64)
        self.offers.make(guest.uid, np.array(best, np.int64), amounts, {r: seats[r].source for r in best}, now)
        fit = {all_names[r] for r in best}
        why = f"a unit of {seats[best[0]].source} is held for it on {' or '.join(sorted(fit)[:NAMED_HOLDERS])}"
        left = [name for name in names if name in fit]
        failed = {n: why for n in names if n not in fit}
        return Filtered(left, self.occupancy.rows(left), failed, {}, seated=True)

    # -- room

    def _anywhere(self, guest: Guest, taken: Sequence[Amounts]) -> Mask:
        """By row; one more, at row -1, stands for a node that is not known. Only where something is held is there
        something to look at."""
        holding = np.flatnonzero(self.occupancy.holding)
        fits = np.ones(len(self.occupancy.holding) + 1, np.bool_)
        fits[holding] = self._fits(guest, holding, guest.request, taken)
        return fits

    def _fits(
        self, guest: Guest, rows: Rows, needed: Resources, taken: Sequence[Amounts], covered: Resources = NOTHING
    ) -> Mask:
        """`taken`: beside what is held. Resource by resource, as tables are laid out."""
        book, fits = self.occupancy, np.ones(len(rows), np.bool_)
        for r, wanted in enumerate(needed):
            if wanted > 0:
                held = book.held[:, r].take(rows) - covered[r]
                if guest.gives_way:
                    held -= book.lent[:, r].take(rows)
                left = book.allocatable[:, r].take(rows)
                for table in taken:
                    left -= table[:, r].take(rows)
                fits &= room_beside(left, held, wanted)
        return fits

    @property
    def _taken(self) -> tuple[Amounts, Amounts]:
        return self.occupancy.used, self.offers.charged(len(self.occupancy.names))

    def _helps(self, guest: Guest, node: str, victims: frozenset[str]) -> bool:
        row = self.occupancy.row.get(node)
        if row is None:
            return True
        count = self.occupancy.counted(row, victims)
        held = count.held.minus(count.lent) if guest.gives_way else count.held
        left = self.occupancy.allocatable[row] - _vector(count.used) - self.offers.charged(row + 1)[row]
        units = [
            s for s in self.occupancy.units.matching(guest) if count.unused.get(s.source, 0) > self._offered(s, row)
        ]
        ways = [(guest.request, NOTHING), *((guest.request.at_least(s.shape), s.shape) for s in units)]
        return any(
            ((_vector(need) <= 0) | room_beside(left, _vector(held) - _vector(own), _vector(need))).all()
            for need, own in ways
        )

    # -- words

    def _refusals(self, guest: Guest, rows: Rows) -> tuple[dict[str, str], dict[str, str]]:
        """Few different sentences: the scheduler counts equal ones."""
        book = self.occupancy
        failed: dict[str, str] = {}
        hopeless: dict[str, str] = {}
        asked = (guest.gives_way, *(n > 0 for n in guest.request))
        for row, hope in zip(rows.tolist(), self._fits(guest, rows, guest.request, ()).tolist(), strict=True):
            count = book.counts[row]
            (failed if hope else hopeless)[book.names[row]] = count.words.get(asked) or _words(count, asked, guest)
        return failed, hopeless

    # -- scores

    def _scores(self, guest: Guest, seats: Mapping[int, HeldPledge]) -> Scores:
        """Of every row."""
        cluster = self._cluster(len(self.occupancy.names))
        need, payer = np.empty_like(cluster.promised), np.full(len(cluster.names), -1, np.int64)
        need[:] = guest.request[:NATIVE]
        for pledge in {s.source: s for s in seats.values()}.values():
            rows_of = [row for row, seat in seats.items() if seat is pledge]
            need[rows_of], payer[rows_of] = guest.request.minus(pledge.shape)[:NATIVE], 0
        asked = Request(guest.name, guest.namespace, guest.labels, Minimum())
        shares = share_of(cluster.promised + need, cluster.room)
        return total(weigh(Demand(asked, need, need, need, payer, shares), cluster), len(cluster.names))

    def _cluster(self, rows: int) -> Cluster:
        """As far as scorers look at it."""
        book = self.occupancy
        whole, used, held, lent = (t[:rows, :NATIVE] for t in (book.allocatable, book.used, book.held, book.lent))
        promised, none, no = (
            used + held + self.offers.charged(rows)[:, :NATIVE],
            np.zeros(rows),
            np.zeros(rows, np.bool_),
        )
        return Cluster(book.names, (), whole, whole, promised, lent, none, no, no, no, {}, book.load[:rows], whole, ())


def _words(count: Count, asked: tuple[bool, ...], guest: Guest) -> str:
    """Kept beside the count."""
    held = count.held.minus(count.lent) if guest.gives_way else count.held
    rows = zip(RESOURCES, held, guest.request, strict=True)
    amounts = ", ".join(f"{name} {spell(name, n)}" for name, n, wanted in rows if n > 0 and wanted > 0)
    holders = sorted(count.unused, key=lambda source: (-count.unused[source], source))[:NAMED_HOLDERS]
    count.words[asked] = f"{amounts} reserved by {', '.join(holders) or 'pods that ask for less than their unit'}"
    return count.words[asked]


def _vector(amount: Resources) -> Amounts:
    return np.array(amount, np.int64)
