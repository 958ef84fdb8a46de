"""Looks at many nodes together: whom would a pod take on each, and which one costs the least?

For nodes of which nothing but sums counts. On all of them at once, who may go is thought away, and the first comes
back, then the second. What it says is what looking at one node after the other would say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Alike, Preemptor
from j10ce.scheduler.plugins.classic.measures import Measures, measures
from j10ce.scheduler.plugins.classic.sheet import Numbers, Sheet
from j10ce.scheduler.plugins.classic.standing import Rival
from j10ce.scheduler.plugins.classic.toll import Leaving, Toll


class Going(NamedTuple):
    """Who may go, node by node, in the order in which they come back."""

    lines: Rows
    rows: Rows
    slo: Numbers
    bears: Numbers

    def only(self, mask: Mask) -> Going:
        return Going(self.lines[mask], self.rows[mask], self.slo[mask], self.bears[mask])


class ManyLook:
    def __init__(self, sheet: Sheet, margin: float, minimum: float) -> None:
        self._sheet, self._margin, self._minimum = sheet, margin, minimum

    def cheapest(self, mine: Rival, rows: Rows, cycle: Alike, now: float) -> Toll | None:
        """Whether somebody is spared is asked about victims alone: whoever comes back stays in any case."""
        going = self._going(mine, rows, cycle, now)
        while len(going.lines):
            fits, victims = self._victims(mine.pod, going, cycle)
            spared = [line for line in victims.lines.tolist() if cycle.spared(self._sheet.pod(line))]
            if not spared:
                return self._least(fits, victims, cycle.book)
            going = going.only(~np.isin(going.lines, spared))
        return None

    # -- inside

    def _victims(self, pod: PodFacts, going: Going, cycle: Alike) -> tuple[Rows, Going]:
        """The rows where it fits in the end, and who does not come back there."""
        rows = np.unique(going.rows)
        sums, at, charges = cycle.book.sums(rows), np.searchsorted(rows, going.rows), self._sheet.charges(going.lines)
        np.subtract.at(sums.used, at, charges)
        every = np.arange(len(rows))
        fits, gone = cycle.room(pod, sums, every), np.ones(len(at), np.bool_)
        for turn in turns(at):
            coming = turn[fits[at[turn]]]
            sums.used[at[coming]] += charges[coming]
            back = cycle.room(pod, sums, every)[at[coming]]
            gone[coming[back]] = False
            sums.used[at[coming[~back]]] -= charges[coming[~back]]
        return rows[fits], going.only(gone & fits[at])

    def _going(self, mine: Rival, rows: Rows, cycle: Preemptor, now: float) -> Going:
        sheet, a = self._sheet, mine.measure
        lines = sheet.on(rows, cycle.book)
        of = measures(sheet.lines(lines), now)
        pressed = of.metric < self._margin
        if a.metric < self._margin:
            ahead = ~pressed | (a.slo > of.slo) | ((a.slo == of.slo) & (a.metric < of.metric))
        else:
            ahead = ~pressed & (a.metric < of.metric)
        may = (ahead | ~of.contributing) & self._may_go(mine, sheet.of_account(lines, mine.key), of)
        chosen = np.flatnonzero(may)
        bears = np.where(of.contributing, of.metric - self._margin, 0.0)
        going = Going(lines, sheet.rows(lines), of.slo, bears)
        keys = (
            of.metric,
            np.where(pressed, -of.slo, 0.0),
            ~pressed,
            ~of.contributing,
            going.rows,
        )
        order = chosen[np.lexsort([key[chosen] for key in keys])]
        return self._ties_by_uid(going, order, np.array([key[order] for key in keys]))

    def _may_go(self, mine: Rival, same: Mask, of: Measures) -> Mask:
        ran = of.ran >= self._minimum
        may = ~of.contributing | (ran & (of.metric >= self._margin)) | (mine.measure.slo > of.slo)
        may |= ran & (of.preemption_overhead <= of.acceptable)
        return may if mine.approach == "independent" else may & ~same

    def _ties_by_uid(self, going: Going, order: Rows, keys: Numbers) -> Going:
        tied = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        if tied.any():
            starts = np.flatnonzero(np.concatenate([[True], ~tied]))
            for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
                if end - start > 1:
                    by_uid = sorted(order[start:end].tolist(), key=lambda n: self._sheet.pod(int(going.lines[n])).uid)
                    order[start:end] = by_uid
        return Going(going.lines[order], going.rows[order], going.slo[order], going.bears[order])

    def _least(self, rows: Rows, victims: Going, book: Book) -> Toll | None:
        if not len(rows):
            return None
        at = np.searchsorted(rows, victims.rows)
        count = np.bincount(at, minlength=len(rows))
        left = np.ones(len(rows), np.bool_)
        if (count == 0).any():
            left = count == 0
        pressed = victims.bears < 0
        for importance in np.unique(victims.slo[pressed])[::-1]:
            left = most(left, at, np.where(pressed & (victims.slo == importance), victims.bears, 0.0))
        left = most(left, at, victims.bears)
        fewest = rows[left & (count == count[left].min())]
        row = int(fewest[book.order()[fewest].argmax()])
        of = victims.only(victims.rows == row)
        uids = [self._sheet.pod(line).uid for line in of.lines.tolist()]
        chosen = zip(uids, of.slo.tolist(), of.bears.tolist(), strict=True)
        return Toll(book.names[row], tuple(Leaving(*each) for each in chosen))


def turns(at: Rows) -> list[Rows]:
    """The first of each node, the second of each, and so on: `at` is sorted."""
    starts = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
    nth = np.arange(len(at)) - np.repeat(starts, np.diff([*starts.tolist(), len(at)]))
    order = np.argsort(nth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(nth[order])) + 1)


def most(left: Mask, at: Rows, weights: Numbers) -> Mask:
    """Of the nodes that are left, those with the largest sum."""
    scores = np.bincount(at, weights=weights, minlength=len(left))
    kept: Mask = left & (scores == scores[left].max())
    return kept
