"""Plugins of each reach, and clusters to ask them about."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import HostPort, Shape
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Reach, Skip, Turned
from j10ce.scheduler.cycle.profile import Profile, profile
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

NAME = "ours"
MOST_GUESTS = 4


class Selected:
    """The node has the labels that a pod selects."""

    name = "Selected"
    reach = Reach.NODE

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return np.array([self._has(pod, book, row) for row in rows.tolist()], np.bool_)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return Turned(("node(s) were not selected",), resolvable=False)

    def _has(self, pod: PodFacts, book: Book, row: int) -> bool:
        node = book.nodes[row]
        return node is not None and all(node.labels.get(k) == v for k, v in pod.shape.node_selector)


class Preferred:
    """More of label `good` is better, measured by the best of those that are left."""

    name = "Preferred"
    reach = Reach.NODE

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        nodes = (book.nodes[row] for row in rows.tolist())
        return np.array([float(node.labels.get("good", 0)) if node else 0.0 for node in nodes], np.float64)

    def normalise(self, raw: Scores, /) -> Scores:
        return np.floor(raw * 100 / raw.max()) if raw.max() > 0 else raw


class Crowded:
    """No more than so many pods on a node."""

    name = "Crowded"
    reach = Reach.ROOM

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return None if pod.shape.ports else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return np.array([len(book.there(row)) < MOST_GUESTS for row in rows.tolist()], np.bool_)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return Turned(("node(s) were crowded",))


class Apart:
    """Not beside a pod of the same name's first letter, and rather where the fewest are on the next row."""

    name = "Apart"
    reach = Reach.CLUSTER

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return None if "apart" in pod.labels else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return np.array([all("apart" not in p.labels for p in book.there(row)) for row in rows.tolist()], np.bool_)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return Turned(("node(s) had another one",))


def ours() -> Profile:
    plugins = [Selected(), NodeResourcesFit(), Crowded(), Apart(), BalancedAllocation(), Preferred()]
    return profile(NAME, plugins, {"Preferred": 2.0})


def node(name: str, cpu: int = 2000, memory: int = 2000, **labels: str) -> NodeFacts:
    return NodeFacts(name, labels, {"cpu": cpu, "memory": memory, "pods": 6})


def pod(name: str, shape: Shape, **labels: str) -> PodFacts:
    return PodFacts(name, "default", name, shape, labels, scheduler=NAME)


def shape(cpu: int, memory: int, selector: str = "", *, ports: bool = False) -> Shape:
    selected = (("zone", selector),) if selector else ()
    return Shape(
        (("cpu", cpu), ("memory", memory)), (cpu, memory), node_selector=selected, ports=(HostPort(1),) * ports
    )


NODES = st.builds(
    lambda n, cpu, memory, zone, good: node(f"n{n:02}", cpu, memory, zone=zone, good=good),
    st.integers(0, 11), st.sampled_from((1000, 2000, 3500)), st.sampled_from((1000, 3000)),
    st.sampled_from("ab"), st.sampled_from("0127"),
)  # fmt: skip
SHAPES = tuple(
    shape(cpu, memory, selector, ports=ports)
    for cpu, memory in ((300, 300), (700, 200))
    for selector in ("", "a")
    for ports in (False, True)
)
