"""What a pod says of nodes, asked of one node at a time: what the columns of the book are compared with."""

from __future__ import annotations

from collections.abc import Mapping

from j10ce.scheduler.book.selecting import holds
from j10ce.scheduler.book.shape import NodeTerm


def met(terms: tuple[NodeTerm, ...] | None, name: str, labels: Mapping[str, str]) -> bool:
    """One term is enough, and None is met by every node; a term without parts, and no terms at all, by none."""
    return terms is None or any(meets(term, name, labels) for term in terms)


def meets(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.expressions and not term.fields:
        return False
    fields = {"metadata.name": name}
    return all(holds(e, labels) for e in term.expressions) and all(holds(f, fields) for f in term.fields)
