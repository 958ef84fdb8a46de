"""Pods for which others had to go: they count as there for pods of no higher priority."""

from __future__ import annotations

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts


class Nominated:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._rows: dict[int, dict[str, PodFacts]] = {}
        self._row: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._row)

    def put(self, pod: PodFacts, node: str) -> None:
        """At a node that was heard of: nobody is awaited at another."""
        self.remove(pod.uid)
        if (row := self._book.row.get(node)) is None:
            return
        self._row[pod.uid] = row
        self._rows.setdefault(row, {})[pod.uid] = pod

    def remove(self, uid: str) -> None:
        row = self._row.pop(uid, None)
        if row is not None:
            del self._rows[row][uid]
            if not self._rows[row]:
                del self._rows[row]

    def rows(self) -> list[int]:
        """Where somebody is awaited."""
        return list(self._rows)

    def row(self, pod: PodFacts) -> int | None:
        """Where it is awaited."""
        return self._row.get(pod.uid)

    def ahead(self, pod: PodFacts, row: int) -> list[PodFacts]:
        """Others that are awaited there, and do not give way to it."""
        return [p for p in self._rows.get(row, {}).values() if p.uid != pod.uid and p.priority >= pod.priority]

    def behind(self, pod: PodFacts, row: int) -> list[PodFacts]:
        """Others that are awaited there, and give way."""
        return [p for p in self._rows.get(row, {}).values() if p.uid != pod.uid and p.priority < pod.priority]
