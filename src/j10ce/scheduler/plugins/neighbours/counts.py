"""How many pods of a kind each row has, for every kind that somebody asked about: kept as pods come and go.

A kind is a group of terms of which a pod must meet all. Kinds are remembered as long as somebody asks: the one that was
not asked about for the longest time is forgotten first, and counted anew if it is asked about again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from j10ce.scheduler.book.around import Around
from j10ce.scheduler.book.book import Book, PodListener
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, PodTerm
from j10ce.scheduler.cluster import Rows

PerRow: TypeAlias = npt.NDArray[np.int64]
MOST_KINDS: Final = 1024
MOST_LOOKS: Final = 50_000  # sets of labels whose kinds are remembered


class WhichPods(NamedTuple):
    """`namespaces` are names, besides those that `namespace_test` chooses by their labels."""

    selector: LabelTest | None
    namespaces: tuple[str, ...]
    namespace_test: LabelTest | None = None

    def chooses(self, pod: PodFacts, around: Around) -> bool:
        if pod.namespace not in self.namespaces and not (
            self.namespace_test is not None and chosen(self.namespace_test, around.labels_of(pod.namespace))
        ):
            return False
        return chosen(self.selector, pod.labels)


class PodKind(NamedTuple):
    """`living`: without those that were asked to end."""

    all_of: tuple[WhichPods, ...]
    living: bool = False

    def counts(self, pod: PodFacts, around: Around) -> bool:
        return all(which.chooses(pod, around) for which in self.all_of)


def which_pods(term: PodTerm, namespace: str) -> WhichPods:
    """`namespace` of the pod whose term it is: its own, where it names none."""
    if not term.namespaces and term.namespace_selector is None:
        return WhichPods(term.selector, (namespace,))
    return WhichPods(term.selector, term.namespaces, term.namespace_selector)


def look(pod: PodFacts) -> Hashable:
    """What selectors see of a pod."""
    return pod.namespace, tuple(pod.labels.items())


class KindCounts:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._kinds: OrderedDict[PodKind, PerRow] = OrderedDict()
        self._known: dict[Hashable, list[PodKind]] = {}
        self._around = book.around.version
        book.listen(self)

    def of(self, kind: PodKind) -> PerRow:
        """By row of the book."""
        self._follow()
        counts = self._kinds.get(kind)
        if counts is None:
            counts = self._kinds[kind] = self._counted(kind)
            self._known.clear()
            if len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        else:
            self._kinds.move_to_end(kind)
            if len(counts) < len(self._book):
                counts = self._kinds[kind] = grown(counts, len(self._book))
        return counts[: len(self._book)]

    def added(self, pod: PodFacts, row: int, /) -> None:
        self._add(pod, row, 1)

    def removed(self, pod: PodFacts, row: int, /) -> None:
        self._add(pod, row, -1)

    def _add(self, pod: PodFacts, row: int, times: int) -> None:
        if not self._kinds:
            return
        self._follow()
        for kind in self._kinds_of(pod):
            if not kind.living or pod.deleted is None:
                counts = self._kinds[kind]
                if row >= len(counts):
                    counts = self._kinds[kind] = grown(counts, row + 1)
                counts[row] += times

    def _kinds_of(self, pod: PodFacts) -> list[PodKind]:
        key = look(pod)
        kinds = self._known.get(key)
        if kinds is None:
            if len(self._known) >= MOST_LOOKS:
                self._known.clear()
            kinds = self._known[key] = [kind for kind in self._kinds if kind.counts(pod, self._book.around)]
        return kinds

    def _counted(self, kind: PodKind) -> PerRow:
        counts: PerRow = np.zeros(len(self._book), np.int64)
        around, verdicts = self._book.around, dict[Hashable, bool]()
        for pod in self._book.pods.values():
            if kind.living and pod.deleted is not None:
                continue
            key = look(pod)
            counted = verdicts.get(key)
            if counted is None:
                counted = verdicts[key] = kind.counts(pod, around)
            if counted:
                counts[self._book.row[pod.node]] += 1
        return counts

    def _follow(self) -> None:
        """Namespaces that changed their labels: whoever chooses by those is counted anew."""
        if self._around != self._book.around.version:
            self._around = self._book.around.version
            self._known.clear()
            for kind in [k for k in self._kinds if any(which.namespace_test is not None for which in k.all_of)]:
                del self._kinds[kind]


def grown(counts: PerRow, rows: int) -> PerRow:
    larger: PerRow = np.zeros(max(rows, 2 * len(counts)), np.int64)
    larger[: len(counts)] = counts
    return larger


def by_domain(counts: PerRow, codes: Rows, domains: int) -> PerRow:
    """The sum over each domain; the first one are nodes without a domain, which count for nothing."""
    sums: PerRow = np.bincount(codes[: len(counts)], weights=counts, minlength=domains).astype(np.int64)
    sums[0] = 0
    return sums


_: type[PodListener] = KindCounts
