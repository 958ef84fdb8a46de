"""Reservation: capacity that policies hold is left alone, and a pod goes where a unit is held for it.

Where a unit is free for a pod it takes that one; elsewhere it needs room beside all that is held. Only cpu and memory
count, as nodes of Kubernetes have no measure of the rest.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from j10ce.model.kinds import QoSProfile
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.columns import CPU, MEMORY
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.units import NO_COUNT, Count, Guest, HeldPledge, Units, room_beside
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import FactWatcher, Filter, PreFilter, Reach, Skip, Turned
from j10ce.scheduler.plugins.resources.standing import Standings

NATIVE: Final = (CPU, MEMORY)  # the first two in the book as in Resources


class Reservation:
    """Hears of policies and profiles as facts, and of pods from the book; a row is counted again when somebody came or
    went."""

    name = "Reservation"
    reach = Reach.CLUSTER
    facts: tuple[type, ...] = (HeldPledge, QoSProfile)

    def __init__(self) -> None:
        self._standings = Standings()
        self._book = Book()
        self._units = Units(self._book.row_of, self._whole)
        self._counts: dict[int, Count] = {}  # of rows with units, until somebody comes or goes

    # -- events

    def fact_seen(self, fact: HeldPledge | QoSProfile, now: float, /) -> None:
        if isinstance(fact, QoSProfile):
            self._standings.seen(fact)
            self._counts.clear()
            return
        for row in self._units.put(fact):
            self._counts.pop(row, None)

    def fact_gone(self, fact: HeldPledge | QoSProfile, now: float, /) -> None:
        if isinstance(fact, QoSProfile):
            self._standings.gone(fact)
            self._counts.clear()
            return
        for row in self._units.remove(fact.source):
            self._counts.pop(row, None)

    def added(self, pod: PodFacts, row: int, /) -> None:
        self._counts.pop(row, None)

    def removed(self, pod: PodFacts, row: int, /) -> None:
        self._counts.pop(row, None)

    # -- answers

    def stands(self, pod: PodFacts) -> bool:
        """On a unit: nobody sends it away."""
        row = self._book.row.get(pod.node)
        return row is not None and pod.uid in self._count(row).standing

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        if self._book is not book:
            self._follow(book)
        return None if self._units.rows() else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        guest, holding = self._guest(pod), self._units.rows()
        there = [n for n, row in enumerate(rows.tolist()) if row in holding]
        seats = [n for n in there if self._seats(guest, int(rows[n]))]
        if seats:
            mask = np.zeros(len(rows), np.bool_)
            mask[seats] = True
            return mask
        mask = np.ones(len(rows), np.bool_)
        for n in there:
            row = int(rows[n])
            mask[n] = self._fits(guest, row, guest.request, NOTHING) and self._unseats_nobody(guest, row)
        return mask

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        """Evictions help where the pod would fit beside what is held, if nobody were there."""
        guest, count = self._guest(pod), self._count(row)
        held = _in_force(count, guest)
        if not self._unseats_nobody(guest, row):
            return Turned(("node(s) had units on which pods stand that came later",))
        if self._fits(guest, row, guest.request, NOTHING):
            return Turned(("node(s) had no unit that is held for the pod",), resolvable=False)
        amounts = ", ".join(f"{RESOURCES[r]} {spell(RESOURCES[r], held[r])}" for r in NATIVE if held[r])
        whole, asked = self._whole(row), guest.request
        hopeful = all(not asked[r] or held[r] <= 0 or held[r] + asked[r] <= whole[r] for r in NATIVE)
        holders = ", ".join(sorted(count.unused)) or "pods that ask for less than their unit"
        return Turned((f"node(s) had {amounts} reserved by {holders}",), hopeful)

    # -- inside

    def _follow(self, book: Book) -> None:
        """What was held by name is held by the rows of this book."""
        pledges = list(self._units.pledges.values())
        self._book, self._units = book, Units(book.row_of, self._whole)
        self._counts.clear()
        for pledge in pledges:
            self._units.put(pledge)
        book.listen(self)

    def _count(self, row: int) -> Count:
        if row not in self._units.rows():
            return NO_COUNT
        count = self._counts.get(row)
        if count is None:
            guests = [self._guest(pod) for pod in self._book.there(row)]
            count = self._counts[row] = self._units.counted(row, guests)
        return count

    def _seats(self, guest: Guest, row: int) -> list[HeldPledge]:
        """Policies with a free unit that the pod can take there."""
        unused = self._count(row).unused
        return [
            pledge
            for pledge in self._units.matching(guest)
            if unused.get(pledge.source, 0) > 0
            and self._fits(guest, row, guest.request.at_least(pledge.shape), pledge.shape)
            and self._unseats_nobody(guest, row)
        ]

    def _unseats_nobody(self, guest: Guest, row: int) -> bool:
        """Who was created first is seated first, also if it comes last: then whoever it takes the unit from must still
        have room."""
        before, there = self._count(row), [self._guest(pod) for pod in self._book.there(row)]
        if not any(g.uid in before.standing and (g.since, g.uid) > (guest.since, guest.uid) for g in there):
            return True
        after, whole = self._units.counted(row, [*there, guest]), self._whole(row)
        now, then = after.used.plus(after.held), before.used.plus(before.held)
        return all(now[r] <= max(whole[r], then[r]) for r in NATIVE)

    def _fits(self, guest: Guest, row: int, needed: Resources, covered: Resources) -> bool:
        held = _in_force(self._count(row), guest)
        book = self._book
        left = book.allocatable[row, : len(NATIVE)] - book.used[row, : len(NATIVE)]
        own = np.array(held[: len(NATIVE)]) - np.array(covered[: len(NATIVE)])
        wanted = np.array(needed[: len(NATIVE)])
        return bool((room_beside(left, own, wanted) | (wanted <= 0)).all())

    def _guest(self, pod: PodFacts) -> Guest:
        asked = dict(pod.shape.requests)
        request = Resources._make((asked.get("cpu", 0), asked.get("memory", 0), 0, 0, 0))
        gives_way, ignored = self._standings.of(pod, self._book.around)
        return Guest(pod.uid, pod.namespace, pod.name, pod.labels, request, pod.node, pod.created, gives_way, ignored)

    def _whole(self, row: int) -> Resources:
        cpu, memory = self._book.allocatable[row, : len(NATIVE)].tolist()
        return Resources._make((cpu, memory, 0, 0, 0))


def _in_force(count: Count, guest: Guest) -> Resources:
    return count.held.minus(count.lent) if guest.gives_way else count.held


_f: tuple[type[Filter], type[PreFilter], type[FactWatcher]] = (Reservation, Reservation, Reservation)
