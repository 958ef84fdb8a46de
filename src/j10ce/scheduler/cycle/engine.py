"""Which node a pod gets, by the plugins of one profile. The book is read, and never changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Filter, Preemptor, Skip, Spares
from j10ce.scheduler.cycle.ladder import Ladder
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.outlook import Outlook, answers, encoded, room_for, score_of
from j10ce.scheduler.cycle.profile import Profile, Roster, WeightedScore
from j10ce.scheduler.cycle.refusals import NoFit, Refusals, refused_whole

MOST_CELLS: Final = 8_000_000  # nodes times shapes that are remembered
LEAST_SHAPES: Final = 16
UNJUDGED: Final = "unjudged"  # who refuses what nobody here can judge


class Choice(NamedTuple):
    row: int
    points: int

    @property
    def score(self) -> float:
        return score_of(self.points)

    def why(self, nodes: int) -> str:
        return f"score {self.score:.2f} is the best of {nodes} nodes"


class Asking(NamedTuple):
    """What must be asked anew for a pod."""

    filters: tuple[Filter, ...]
    scores: tuple[WeightedScore, ...]
    silent: bool  # nobody whose answer may be another for the next pod


class Engine:
    def __init__(self, profile: Profile, book: Book, nominated: Nominated) -> None:
        self.profile, self.book, self.nominated = profile, book, nominated
        self._sparing = [plugin for plugin in profile.plugins if isinstance(plugin, Spares)]
        self._outlooks: OrderedDict[int, Outlook] = OrderedDict()  # by identity of the shape, which they hold
        self._no_fit: dict[int, tuple[int, NoFit]] = {}
        self._turned: dict[int, tuple[int, Refusals]] = {}  # by filters of reach NODE
        self._roster = Roster(profile)

    # -- decisions

    def choose(self, pod: PodFacts) -> Choice | NoFit:
        outlook = self.outlook(pod)
        asking = self._ask(pod, outlook)
        if isinstance(asking, NoFit):
            return asking
        if asking.filters or asking.scores:
            return self._choose_anew(pod, outlook, asking)
        return self._first(pod, outlook.points, None) or self._none(pod, outlook, asking)

    def equal(self, pod: PodFacts, most: int) -> list[Choice]:
        """Where so many pods equal to this one go, one after the other. Nothing, where they have to be decided one by
        one."""
        outlook = self.outlook(pod)
        if not outlook.asked.of_sums or len(self.nominated):
            return []
        asking = self._ask(pod, outlook)
        if isinstance(asking, NoFit) or not asking.silent or asking.filters or asking.scores:
            return []
        return [Choice(*taken) for taken in Ladder(outlook, pod, self.book, most).climb(most)]

    def fits(self, pod: PodFacts, row: int) -> bool:
        """By all filters as the book is, also beside all that are awaited there and do not give way."""
        outlook = self._remembered(pod)
        if outlook.version < self.book.changed:
            outlook.look(pod, self.book)
        if not outlook.allowed[row] or not self._room(pod, outlook, row):
            return False
        if not (ahead := self.nominated.ahead(pod, row)):
            return True
        with self.book.besides(ahead, row):
            return self._room(pod, outlook, row)

    def alike(self, pod: PodFacts, rows: Rows) -> Mask:
        """Where nothing but the book's sums decides whether it fits, whoever of those that are there goes."""
        outlook = self.outlook(pod)
        asking = self._ask(pod, outlook)
        if not outlook.asked.of_sums or isinstance(asking, NoFit) or asking.filters:
            return np.zeros(len(rows), np.bool_)
        return outlook.allowed[rows] & np.isin(rows, self.nominated.rows(), invert=True)

    def room(self, pod: PodFacts, sums: Book, rows: Rows) -> Mask:
        return room_for(self._remembered(pod).asked, pod, sums, rows)

    def spared(self, pod: PodFacts) -> bool:
        return any(plugin.stands(pod) for plugin in self._sparing)

    def budgets(self, victims: Sequence[PodFacts]) -> int:
        """How many of them a disruption budget does not allow to go, in their order; one that is counted as gone by a
        budget costs it nothing."""
        left, over = dict[tuple[str, str], int](), 0
        for victim in victims:
            broken = False
            for budget in self.book.around.budgets_of(victim):
                if victim.name in budget.disrupted:
                    continue
                key = (budget.namespace, budget.name)
                left[key] = left.get(key, budget.allowed) - 1
                broken |= left[key] < 0
            over += broken
        return over

    def hopes(self, pod: PodFacts) -> bool:
        """Whether a node may do, as far as is known without asking anew."""
        return bool((self.outlook(pod).points >= 0).any())

    def outlook(self, pod: PodFacts) -> Outlook:
        outlook = self._remembered(pod)
        outlook.look(pod, self.book)
        return outlook

    # -- inside

    def _remembered(self, pod: PodFacts) -> Outlook:
        """As it was when it was last looked at."""
        key = id(pod.shape)
        outlook = self._outlooks.get(key)
        if outlook is not None:
            self._outlooks.move_to_end(key)
            return outlook
        outlook = self._outlooks[key] = Outlook(self._roster, pod, self.book)
        while len(self._outlooks) > max(LEAST_SHAPES, MOST_CELLS // max(1, len(self.book))):
            old, _ = self._outlooks.popitem(last=False)
            self._no_fit.pop(old, None)
            self._turned.pop(old, None)
        return outlook

    def _room(self, pod: PodFacts, outlook: Outlook, row: int) -> bool:
        rows = np.array([row])
        if not room_for(outlook.asked, pod, self.book, rows).all():
            return False
        asking = self._ask(pod, outlook)
        return not isinstance(asking, NoFit) and all(answers(f, pod, self.book, rows).all() for f in asking.filters)

    def _ask(self, pod: PodFacts, outlook: Outlook) -> Asking | NoFit:
        if pod.unjudged:  # whatever the profile: it would be misplaced
            why = f"this scheduler cannot judge {', '.join(pod.unjudged)}: it needs another scheduler"
            return refused_whole(pod, self.book, UNJUDGED, why, resolvable=False)
        silent, roster = list[int](), self._roster
        for plugin in roster.anew:
            answer = plugin.pre_filter(pod, self.book)
            if isinstance(answer, Skip):
                silent.append(id(plugin))
            elif answer is not None:
                return refused_whole(pod, self.book, plugin.name, answer.reason, answer.resolvable)
        filters, scores = outlook.asked.cluster_filters, outlook.asked.cluster_scores
        if silent and filters:
            filters = tuple([f for f in filters if id(f) not in silent])
        if scores:
            scores = tuple([s for s in scores if not self._mute(s, pod)])
        return Asking(filters, scores, len(silent) == len(roster.anew))

    def _mute(self, scored: WeightedScore, pod: PodFacts) -> bool:
        asked_before = self._roster.pre_scores.get(id(scored.plugin))
        if asked_before is None:
            return False
        all_rows = self.book.order()  # each once
        return isinstance(asked_before.pre_score(pod, self.book, all_rows), Skip)

    def _first(self, pod: PodFacts, points: Rows, rows: Rows | None) -> Choice | None:
        """The best of them that does not stand in the way of others who are awaited there; its own place before all."""
        if not len(points):
            return None
        if not len(self.nominated):
            best = int(points.argmax())
            return Choice(best if rows is None else int(rows[best]), int(points[best])) if points[best] >= 0 else None
        left, own = points.copy(), self.nominated.row(pod)
        if own is not None:
            at = own if rows is None else int(np.searchsorted(rows, own))
            if at < len(left) and left[at] >= 0 and (rows is None or rows[at] == own) and self.fits(pod, own):
                return Choice(own, int(left[at]))
        while left[best := int(left.argmax())] >= 0:
            row = best if rows is None else int(rows[best])
            if not self.nominated.ahead(pod, row) or self.fits(pod, row):
                return Choice(row, int(left[best]))
            left[best] = -1
        return None

    def _choose_anew(self, pod: PodFacts, outlook: Outlook, asking: Asking) -> Choice | NoFit:
        rows: Rows = np.flatnonzero(outlook.points >= 0)
        for f in asking.filters:
            rows = rows[answers(f, pod, self.book, rows)]
        if not len(rows):
            return self._none(pod, outlook, asking)
        total = outlook.total(rows)
        for scored in asking.scores:
            total = total + self._roster.counts[id(scored.plugin)](scored.plugin.score(pod, self.book, rows))
        points = encoded(total, self.book.order()[rows])
        return self._first(pod, points, rows) or self._none(pod, outlook, asking)

    def _none(self, pod: PodFacts, outlook: Outlook, asking: Asking) -> NoFit:
        """Of equal pods that nothing else is asked for, once for each state of the book."""
        key, plain = id(pod.shape), not asking.filters and not len(self.nominated)
        version, before = self._no_fit.get(key, (-1, None))
        if plain and before is not None and version == self.book.version:
            return before
        refusals = self._turned_by_nodes(pod, outlook).copied()
        no_fit = refusals.ask((*outlook.asked.room_filters, *asking.filters), pod, self.book).result()
        if plain:
            self._no_fit[key] = (self.book.version, no_fit)
        return no_fit

    def _turned_by_nodes(self, pod: PodFacts, outlook: Outlook) -> Refusals:
        version, refusals = self._turned.get(id(pod.shape), (-1, None))
        if refusals is None or version != self.book.changed:
            refusals = Refusals(np.flatnonzero(self.book.alive[: len(self.book)]))
            refusals.ask(outlook.asked.node_filters, pod, self.book)
            self._turned[id(pod.shape)] = (self.book.changed, refusals)
        return refusals


_: type[Preemptor] = Engine
