"""Layers over each other so that only the first that selects a node is heard there.

NodeStrategies are merged field by field: what an upper one does not say, a lower one does. Theirs are not: the first
entry that matches has the word alone, and may have switched off what the cluster says. So every layer says the whole
of what holds on its nodes, and one below that says a field more leaves out those nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from j10ce.dialects.koordinator.native.selectors import without
from j10ce.model.kinds import Selector
from j10ce.model.parts.strategy import Strategy
from j10ce.policy.strategy import fields

MOST_PIECES: Final = 64  # of one layer


class NativeLayer(NamedTuple):
    name: str
    selector: Selector
    priority: int
    strategy: Strategy  # all that holds on its nodes


class TooTangled(Exception):
    """Selectors that overlap in more ways than objects can be made for."""


def stacked(layers: Sequence[NativeLayer]) -> list[NativeLayer]:
    """The first layer has the first word. Merged by priority, they say on every node what its first layer says.

    Raises TooTangled.
    """
    out: list[NativeLayer] = []
    said = [_said(layer) for layer in layers]
    for n, (layer, own) in enumerate(zip(layers, said, strict=True)):
        if own:
            silent = (above.selector for above, theirs in zip(layers[:n], said, strict=False) if not own <= theirs)
            pieces = _outside(layer.selector, silent)
            out += [layer._replace(name=_numbered(layer.name, m), selector=piece) for m, piece in enumerate(pieces)]
    return out


def _said(layer: NativeLayer) -> set[str]:
    return {path for path, _ in fields(layer.strategy)}


def _outside(selector: Selector, others: Iterable[Selector]) -> list[Selector]:
    pieces = [selector]
    for other in others:
        pieces = [rest for piece in pieces for rest in without(piece, other)]
        if len(pieces) > MOST_PIECES:
            raise TooTangled
    return pieces


def _numbered(name: str, n: int) -> str:
    return name if n == 0 else f"{name}-{n + 1}"
