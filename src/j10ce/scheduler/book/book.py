"""What runs where, kept by events.

A pod that was given a node is *assumed* there until its binding is seen, and forgotten when the binding failed; both
cost the same however large the cluster is. Rows are for life: a node that goes leaves an empty one behind, which it
finds again when it is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np

from j10ce.scheduler.book.around import Around
from j10ce.scheduler.book.columns import PODS, Columns
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.cluster import Amounts, Mask

MORE_ROWS: Final = 64
MOST_AMOUNT: Final = 1 << 50  # of one resource of one pod or node: sums stay within 64 bits


class PodListener(Protocol):
    """Whoever keeps sums of its own over pods that have a node."""

    def added(self, pod: PodFacts, row: int, /) -> None: ...

    def removed(self, pod: PodFacts, row: int, /) -> None: ...


class Book:
    """`allocatable` and `used`: [row, column] of `columns`, in millicores and else whole units.

    `moved` and `changed` are logs of rows, appended to for ever and cut by nobody but `trim`: where pods came or went,
    and where the node itself is another. Whoever caches remembers how far it has read.
    """

    def __init__(self) -> None:
        self.columns = Columns()
        self.around = Around()
        self.names: list[str] = []
        self.row: dict[str, int] = {}
        self.nodes: list[NodeFacts | None] = []  # None: the node is gone
        self.alive: Mask = np.zeros(0, np.bool_)
        self.allocatable: Amounts = np.zeros((0, len(self.columns)), np.int64, order="F")
        self.used: Amounts = np.zeros((0, len(self.columns)), np.int64, order="F")
        self.weighed: Amounts = np.zeros((0, 2), np.int64, order="F")  # cpu and memory as scores count them
        self.pods: dict[str, PodFacts] = {}  # by uid: those that have a node
        self.assumed: set[str] = set()  # uids
        self.moved: list[int] = []
        self.changed: list[int] = []
        self._there: list[dict[str, PodFacts]] = []
        self._listeners: list[PodListener] = []

    def __len__(self) -> int:
        """Rows, those of nodes that are gone included."""
        return len(self.names)

    def listen(self, listener: PodListener) -> None:
        """It hears of all that is there, and of each change from now on."""
        self._listeners.append(listener)
        for row, there in enumerate(self._there):
            for pod in there.values():
                listener.added(pod, row)

    # -- events

    def put_node(self, node: NodeFacts) -> None:
        row = self.row_of(node.name)
        if self.nodes[row] == node:
            return
        self.nodes[row] = node
        self.alive[row] = True
        amounts = self._vector(node.allocatable.items())
        self.allocatable[row] = 0
        for column, amount in amounts:
            self.allocatable[row, column] = amount
        self.changed.append(row)

    def remove_node(self, name: str) -> None:
        """Pods that are still there keep their places."""
        row = self.row.get(name)
        if row is not None and self.nodes[row] is not None:
            self.nodes[row] = None
            self.alive[row] = False
            self.allocatable[row] = 0
            self.changed.append(row)

    def put_pod(self, pod: PodFacts) -> None:
        """As the API server has it. One without a node keeps the place that is assumed for it."""
        before = self.pods.get(pod.uid)
        if not pod.node and pod.uid in self.assumed and not pod.ended:
            return
        if before is not None:
            self._take_away(before)
        self.assumed.discard(pod.uid)
        if pod.node and not pod.ended:
            self._put_there(pod)

    def remove_pod(self, uid: str) -> None:
        self.assumed.discard(uid)
        if (before := self.pods.get(uid)) is not None:
            self._take_away(before)

    def assume(self, pod: PodFacts, node: str) -> None:
        """It is about to be bound there."""
        if pod.uid in self.pods:
            raise ValueError(f"{pod.key} has a node already: {self.pods[pod.uid].node}")
        self.assumed.add(pod.uid)
        self._put_there(pod._replace(node=node))

    def forget(self, uid: str) -> None:
        """Its binding failed. Nothing happens to a pod whose binding was seen."""
        if uid in self.assumed:
            self.remove_pod(uid)

    # -- questions

    def there(self, row: int) -> Collection[PodFacts]:
        return self._there[row].values()

    @contextmanager
    def without(self, pods: Iterable[PodFacts]) -> Iterator[None]:
        """As if they were gone: for the time of a question."""
        gone = [pod for pod in pods if pod.uid in self.pods]
        for pod in gone:
            self._take_away(pod)
        try:
            yield
        finally:
            for pod in gone:
                self._put_there(pod)

    def row_of(self, name: str) -> int:
        """A new one for a node that nobody has heard of."""
        row = self.row.get(name)
        if row is None:
            row = self.row[name] = len(self.names)
            self.names.append(name)
            self.nodes.append(None)
            self._there.append({})
            if row == len(self.alive):
                self._grow(row + max(MORE_ROWS, row), len(self.columns))
        return row

    # -- inside

    def _put_there(self, pod: PodFacts) -> None:
        row = self.row_of(pod.node)
        self._charge(row, pod, 1)
        self._there[row][pod.uid] = self.pods[pod.uid] = pod
        for listener in self._listeners:
            listener.added(pod, row)

    def _take_away(self, pod: PodFacts) -> None:
        row = self.row[pod.node]
        self._charge(row, pod, -1)
        del self.pods[pod.uid], self._there[row][pod.uid]
        for listener in self._listeners:
            listener.removed(pod, row)

    def _charge(self, row: int, pod: PodFacts, times: int) -> None:
        for column, amount in self._vector(pod.shape.requests):
            self.used[row, column] += times * amount
        self.used[row, PODS] += times
        self.weighed[row, 0] += times * pod.shape.weighed[0]
        self.weighed[row, 1] += times * pod.shape.weighed[1]
        self.moved.append(row)

    def _vector(self, amounts: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        numbered = [(column, min(amount, MOST_AMOUNT)) for column, amount in self.columns.vector(amounts)]
        if len(self.columns) > self.used.shape[1]:
            self._grow(len(self.alive), len(self.columns))
        return numbered

    def _grow(self, rows: int, columns: int) -> None:
        self.allocatable, self.used = _grown(self.allocatable, rows, columns), _grown(self.used, rows, columns)
        self.weighed = _grown(self.weighed, rows, 2)
        alive = np.zeros(rows, np.bool_)
        alive[: len(self.alive)] = self.alive
        self.alive = alive


def _grown(table: Amounts, rows: int, columns: int) -> Amounts:
    """Column by column: answers look at one resource of all nodes."""
    larger: Amounts = np.zeros((rows, columns), np.int64, order="F")
    larger[: table.shape[0], : table.shape[1]] = table
    return larger
