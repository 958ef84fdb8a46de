"""What runs where, kept by events.

A pod that was given a node is *assumed* there until its binding is seen, and forgotten when the binding failed; both
cost the same however large the cluster is. Rows are for life: a node that goes leaves an empty one behind, which it
finds again when it is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeAlias

import numpy as np

from j10ce.scheduler.book.absent import Absent
from j10ce.scheduler.book.around import Around
from j10ce.scheduler.book.columns import CPU, MEMORY, PODS, Columns
from j10ce.scheduler.book.facts import LoadFacts, NodeFacts, PodFacts
from j10ce.scheduler.book.index import NodeIndex
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cluster import Amounts, Mask, Rows, Scores

Requests: TypeAlias = tuple[tuple[str, int], ...]  # by name
Vector: TypeAlias = tuple[tuple[int, int], ...]  # by column

MORE_ROWS: Final = 64
LOADS: Final = 20
MOST_VECTORS: Final = 10_000  # of requests, remembered
MOST_AMOUNT: Final = 1 << 50  # of one resource of one pod or node: sums stay within 64 bits


class PodListener(Protocol):
    """Whoever keeps sums of its own over pods that have a node."""

    def added(self, pod: PodFacts, row: int, /) -> None: ...

    def removed(self, pod: PodFacts, row: int, /) -> None: ...


class Book:
    """`allocatable` and `used`: [row, column] of `columns`, in millicores and else whole units.

    Whoever caches remembers the `version` that he has seen: `touched_at` says when pods last came or went on a row or
    its node became another, `changed_at` the latter alone, and `changed` when any node did.
    """

    def __init__(self) -> None:
        self.columns = Columns()
        self.around = Around()
        self.index = NodeIndex(self)
        self.names: list[str] = []
        self.row: dict[str, int] = {}
        self.nodes: list[NodeFacts | None] = []  # None: the node is gone
        self.alive: Mask = np.zeros(0, np.bool_)
        self.allocatable: Amounts = np.zeros((0, len(self.columns)), np.int64, order="F")
        self.used: Amounts = np.zeros((0, len(self.columns)), np.int64, order="F")
        self.load: Scores = np.zeros(0)  # the peak to expect, 0 to 1
        self.weighed: Amounts = np.zeros((0, 2), np.int64, order="F")  # cpu and memory as scores count them
        self.lacking: set[int] = set()  # rows of nodes without any cpu, or without memory
        self.pods: dict[str, PodFacts] = {}  # by uid: those that have a node, one that was heard of
        self._absent = Absent()
        self.assumed: set[str] = set()  # uids
        self.version = 0
        self.changed = 0
        self.touched_at: Rows = np.zeros(0, np.int64)
        self.changed_at: Rows = np.zeros(0, np.int64)
        self._order: Rows = np.zeros(0, np.int64)
        self._vectors: dict[Requests, Vector] = {}
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
        self._offer(node.allocatable)
        amounts = self._numbered(node.allocatable.items())
        self.allocatable[row] = 0
        for column, amount in amounts:
            self.allocatable[row, column] = amount
        self._judge(row)
        self._changed(row)

    def remove_node(self, name: str) -> None:
        """Pods that are still there keep their places."""
        row = self.row.get(name)
        if row is not None and self.nodes[row] is not None:
            self.nodes[row] = None
            self.alive[row] = False
            self.allocatable[row] = 0
            self.lacking.discard(row)
            self._changed(row)

    def put_load(self, of: LoadFacts) -> None:
        """Kept in twentieths, so that it is seldom another."""
        row, load = self.row_of(of.node), min(1.0, max(0.0, round(of.load * LOADS) / LOADS))
        if self.load[row] != load:
            self.load[row] = load
            self._changed(row)

    def put_pod(self, pod: PodFacts) -> None:
        """As the API server has it. One without a node keeps the place that is assumed for it."""
        before = self.pods.get(pod.uid)
        if not pod.node and pod.uid in self.assumed and not pod.ended:
            return
        self.assumed.discard(pod.uid)
        self._absent.drop(pod.uid)
        if before is not None and _alike(before, pod):
            self._there[self.row[pod.node]][pod.uid] = self.pods[pod.uid] = pod
            return
        if before is not None:
            self._take_away(before)
        if pod.node and not pod.ended:
            (self._put_there if pod.node in self.row else self._absent.put)(pod)

    def remove_pod(self, uid: str) -> None:
        self.assumed.discard(uid)
        self._absent.drop(uid)
        if (before := self.pods.get(uid)) is not None:
            self._take_away(before)

    def assume(self, pod: PodFacts, node: str) -> None:
        """It is about to be bound there."""
        if pod.uid in self.pods:
            raise ValueError(f"{pod.key} has a node already: {self.pods[pod.uid].node}")
        self.assumed.add(pod.uid)
        self._put_there(pod.at(node))

    def assume_all(self, pods: Sequence[PodFacts], rows: Sequence[int]) -> None:
        """Pods of one shape that have no node: as `assume` of each, at a tenth of what that takes."""
        if not pods:
            return
        there, counts = np.unique(np.array(rows), return_counts=True)
        for column, amount in (*self.vector(pods[0].shape.requests), (PODS, 1)):
            self.used[there, column] += counts * amount
        for column, amount in enumerate(pods[0].shape.weighed):
            self.weighed[there, column] += counts * amount
        self.version += 1
        self.touched_at[there] = self.version
        names, known, assumed = self.names, self.pods, self.assumed
        for pod, row in zip(pods, rows, strict=True):
            if pod.uid in known:
                raise ValueError(f"{pod.key} has a node already: {known[pod.uid].node}")
            placed = pod.at(names[row])
            assumed.add(pod.uid)
            self._there[row][pod.uid] = known[pod.uid] = placed
            for listener in self._listeners:
                listener.added(placed, row)

    def forget(self, uid: str) -> None:
        """Its binding failed. Nothing happens to a pod whose binding was seen."""
        if uid in self.assumed:
            self.remove_pod(uid)

    # -- questions

    def there(self, row: int) -> Collection[PodFacts]:
        return self._there[row].values()

    def order(self) -> Rows:
        """By row: how many names come after its own. Another array once there are more names."""
        if len(self._order) != len(self.names):
            by_name = sorted(range(len(self.names)), key=self.names.__getitem__, reverse=True)
            self._order = np.zeros(len(by_name), np.int64)
            self._order[by_name] = np.arange(len(by_name))
        return self._order

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

    @contextmanager
    def besides(self, pods: Iterable[PodFacts], row: int) -> Iterator[None]:
        """As if they were there, too: for the time of a question."""
        come = [pod.at(self.names[row]) for pod in pods if pod.uid not in self.pods]
        for pod in come:
            self._put_there(pod)
        try:
            yield
        finally:
            for pod in come:
                self._take_away(pod)

    def imagined(self, pod: PodFacts, rows: Rows, times: Rows) -> Book:
        """The sums of rows, one by one, with so many more of a pod."""
        book = self.sums(rows)
        for column, amount in (*self.vector(pod.shape.requests), (PODS, 1)):
            book.used[:, column] += times * amount
        for column, amount in enumerate(pod.shape.weighed):
            book.weighed[:, column] += times * amount
        return book

    def sums(self, rows: Rows) -> Book:
        """Those of rows, one by one: nothing else of it is true."""
        book = Book()
        book.columns, book.lacking = self.columns, self.lacking
        tables = (self.allocatable, self.used, self.weighed)
        book.allocatable, book.used, book.weighed = (t.T.take(rows, axis=1).T for t in tables)
        book.alive = self.alive[rows]
        return book

    def charge(self, shape: Shape) -> Amounts:
        """What a pod takes, as in `used`."""
        vector = self.vector(shape.requests)
        taken = np.zeros(self.used.shape[1], np.int64)
        for column, amount in vector:
            taken[column] += amount
        taken[PODS] += 1
        return taken

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
            for pod in self._absent.taken(name):
                self._put_there(pod)
        return row

    # -- inside

    def _offer(self, names: Iterable[str]) -> None:
        """All is counted anew where what was asked for under one number has several from now on."""
        parted = self.columns.parted
        self.columns.offer(names)
        if self.columns.parted == parted:
            return
        self._vectors.clear()
        self._grow(len(self.alive), len(self.columns))
        self.used[:] = 0
        for row, there in enumerate(self._there):
            for pod in there.values():
                for column, amount in (*self.vector(pod.shape.requests), (PODS, 1)):
                    self.used[row, column] += amount
        self.version += 1
        self.changed = self.touched_at[:] = self.changed_at[:] = self.version

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
        for column, amount in self.vector(pod.shape.requests):
            self.used[row, column] += times * amount
        self.used[row, PODS] += times
        cpu, memory = pod.shape.weighed
        self.weighed[row, 0] += times * cpu
        self.weighed[row, 1] += times * memory
        self.version += 1
        self.touched_at[row] = self.version

    def _judge(self, row: int) -> None:
        if self.allocatable[row, CPU] > 0 and self.allocatable[row, MEMORY] > 0:
            self.lacking.discard(row)
        else:
            self.lacking.add(row)

    def _changed(self, row: int) -> None:
        self.version += 1
        self.changed = self.touched_at[row] = self.changed_at[row] = self.version

    def column(self, name: str) -> int:
        return self.vector(((name, 0),))[0][0]

    def vector(self, requests: Requests) -> Vector:
        """(column, amount) of each."""
        vector = self._vectors.get(requests)
        if vector is None:
            if len(self._vectors) >= MOST_VECTORS:
                self._vectors.clear()
            vector = self._vectors[requests] = self._numbered(requests)
        return vector

    def _numbered(self, amounts: Iterable[tuple[str, int]]) -> Vector:
        numbered = tuple((column, min(amount, MOST_AMOUNT)) for column, amount in self.columns.vector(amounts))
        if len(self.columns) > self.used.shape[1]:
            self._grow(len(self.alive), len(self.columns))
        return numbered

    def _grow(self, rows: int, columns: int) -> None:
        self.allocatable, self.used = _grown(self.allocatable, rows, columns), _grown(self.used, rows, columns)
        self.weighed = _grown(self.weighed, rows, 2)
        more = rows - len(self.alive)
        self.alive = np.concatenate([self.alive, np.zeros(more, np.bool_)])
        self.load = np.concatenate([self.load, np.zeros(more)])
        self.touched_at = np.concatenate([self.touched_at, np.zeros(more, np.int64)])
        self.changed_at = np.concatenate([self.changed_at, np.zeros(more, np.int64)])


def _alike(before: PodFacts, pod: PodFacts) -> bool:
    """Nobody who counts pods would count it otherwise."""
    return (
        not pod.ended
        and before.node == pod.node
        and before.shape == pod.shape
        and before.labels == pod.labels
        and before.priority == pod.priority
        and (before.deleted is None) == (pod.deleted is None)
    )


def _grown(table: Amounts, rows: int, columns: int) -> Amounts:
    """Column by column: answers look at one resource of all nodes."""
    larger: Amounts = np.zeros((rows, columns), np.int64, order="F")
    larger[: table.shape[0], : table.shape[1]] = table
    return larger
