"""Which nodes suit a shape by what their objects say: labels, names and taints, whoever runs there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import cast

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint
from j10ce.scheduler.book.index import judge
from j10ce.scheduler.book.selecting import holds, whole
from j10ce.scheduler.book.shape import NodeExpression, NodeTerm, Pairs, Shape, Toleration
from j10ce.scheduler.cluster import Mask, Rows


def wanted(shape: Shape, book: Book, rows: Rows) -> Mask:
    """By its node selector and its required affinity to nodes."""
    return labelled(shape.node_selector, book, rows) & among(shape.affinity.nodes, book, rows)


def labelled(selector: Pairs, book: Book, rows: Rows) -> Mask:
    mask = np.ones(len(rows), np.bool_)
    for key, value in selector:
        column = book.index.label(key)
        mask &= column.codes[rows] == column.code.get(value, -1)
    return mask


def among(terms: tuple[NodeTerm, ...] | None, book: Book, rows: Rows) -> Mask:
    """By any of them; None: every node."""
    if terms is None:
        return np.ones(len(rows), np.bool_)
    mask = np.zeros(len(rows), np.bool_)
    for term in terms:
        mask |= matches(term, book, rows)
    return mask


def matches(term: NodeTerm, book: Book, rows: Rows) -> Mask:
    if not term.expressions and not term.fields:
        return np.zeros(len(rows), np.bool_)
    mask = np.ones(len(rows), np.bool_)
    for e in term.expressions:
        mask &= judge(book.index.label(e.key), rows, _rule(e))
    for f in term.fields:
        names = book.index.column("name", _name)
        mask &= judge(names, rows, _rule(f)) if f.key == "metadata.name" else False
    return mask


def tolerated(shape: Shape, book: Book, rows: Rows) -> Mask:
    """No taint keeps the shape away: those that only ask not to come are no reason."""
    return judge(book.index.column("taints", _taints), rows, lambda t: unwelcome(shape, as_taints(t)) is None)


def unwelcome(shape: Shape, taints: Iterable[NodeTaint]) -> NodeTaint | None:
    """The first taint that keeps it away."""
    return next((t for t in taints if t.effect != "PreferNoSchedule" and not bears(shape.tolerations, t)), None)


def bears(tolerations: Iterable[Toleration], taint: NodeTaint) -> bool:
    return any(_bears(toleration, taint) for toleration in tolerations)


def _bears(toleration: Toleration, taint: NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            have, bound = whole(taint.value), whole(toleration.value)
            if have is None or bound is None:
                return False
            return have > bound if toleration.operator == "Gt" else have < bound


def _rule(expression: NodeExpression) -> Callable[[Hashable], bool]:
    key = expression.key
    return lambda value: holds(expression, {} if value is None else {key: cast("str", value)})


def _name(node: NodeFacts) -> Hashable:
    return node.name


def _taints(node: NodeFacts) -> Hashable:
    return node.taints


def as_taints(value: Hashable) -> tuple[NodeTaint, ...]:
    return () if value is None else cast("tuple[NodeTaint, ...]", value)
