"""Where siblings of different CPU sets meet, and what weights give them there.

A weight counts on the CPUs that its owner may use, evenly. Of a cell, CPUs which no set divides, a sibling has
    time(cell) · density / Σ densities there,   density = weight / its CPUs
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

Cpus = frozenset[int]
Floats = Sequence[float]
CLOSE: Final = 1 - 1e-12


class Field:
    def __init__(self, here: float, room: Cpus, sets: Sequence[Cpus]) -> None:
        cells = _cells(room, set(sets))
        self.cpus = len(room)
        self.times = [here * len(cell) / len(room) for cell in cells]  # millicores
        self._counts = [len(own) for own in sets]
        self._where = [frozenset(n for n, cell in enumerate(cells) if cell <= own) for own in sets]

    def met(self, shares: Floats, besides: float = 0.0) -> list[float]:
        """The sum of densities in every cell; `besides`: one that is met in all of them."""
        loads = [besides] * len(self.times)
        for n, share in enumerate(shares):
            self.add(n, share, loads)
        return loads

    def add(self, n: int, shares: float, met: list[float]) -> None:
        for cell in self._where[n]:
            met[cell] += shares / self._counts[n]

    def time(self, n: int, share: float, met: Floats) -> float:
        """Millicores of one that is among those met."""
        own = share / self._counts[n]
        return sum([self.times[c] * own / met[c] for c in self._where[n]]) if own else 0.0

    def closer(self, n: int, need: float, was: float, met: Floats) -> float:
        """A weight on the way to the one at which it has its need, or infinity. It is Newton's step: time rises ever
        slower with weight, so that it never goes too far."""
        own = was / self._counts[n]
        has = slope = 0.0
        for c in self._where[n]:
            if met[c]:
                has += self.times[c] * own / met[c]
                slope += self.times[c] * max(0.0, met[c] - own) / met[c] ** 2
        return (own + (need - has) / slope) * self._counts[n] if slope else math.inf

    def room_for(self, needs: Floats) -> bool:
        """Whether the CPUs of every set are enough for all who are confined to them, whatever they weigh."""
        asked: dict[frozenset[int], float] = {}
        for where, need in zip(self._where, needs, strict=True):
            asked[where] = asked.get(where, 0.0) + need
        rooms = ((math.fsum(self.times[c] for c in own), own) for own in asked)
        return all(math.fsum(n for w, n in asked.items() if w <= own) * CLOSE <= room for room, own in rooms)


def _cells(room: Cpus, sets: Iterable[Cpus]) -> list[Cpus]:
    """The coarsest parts of the CPUs that none of the sets divides."""
    cells: dict[tuple[bool, ...], set[int]] = {}
    ordered = sorted(sets, key=sorted)
    for cpu in room:
        cells.setdefault(tuple(cpu in own for own in ordered), set()).add(cpu)
    return [frozenset(cell) for cell in cells.values()]
