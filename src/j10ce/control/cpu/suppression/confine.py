"""Which CPUs a room is: whole cores, as many in each memory node in proportion, and those that it was before.

A core is completed before another is begun, and broken up before another is given back whole.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from j10ce.model.machine.topology import Cpus, Topology

SLACK: Final = 0.5  # CPUs by which a room must exceed a number before there is one more: rooms waver around numbers
EXACT: Final = 1e-9


def count(room: float, held: int, *, whole: bool = False) -> int:
    """How many CPUs: a part of one counts as one unless `whole`; at least one. Fewer at once, more with some slack."""
    if whole:
        return max(1, math.floor(room + EXACT))
    fit = max(1, math.ceil(room - EXACT))
    return held if 0 < held < fit and room < held + SLACK else fit


def choose(count: int, usable: Cpus, held: Cpus, topology: Topology) -> Cpus:
    """So many of the usable CPUs, or all of them where there are fewer; what was held stays as far as it can."""
    chosen = _Chosen(usable, held, topology)
    while len(chosen.cpus) > count:
        chosen.leave()
    while len(chosen.cpus) < min(count, len(usable)):
        chosen.take()
    return frozenset(chosen.cpus)


class _Chosen:
    """A choice on its way, with how much of each core and memory node is in it."""

    def __init__(self, usable: Cpus, held: Cpus, topology: Topology) -> None:
        self.cpus = set(held & usable)
        self.free = set(usable - held)
        self._core = {cpu: topology.site(cpu).core for cpu in usable}
        self._node = {cpu: topology.site(cpu).numa for cpu in usable}
        self._sizes, self._rooms = Counter(self._core.values()), Counter(self._node.values())
        self._of_core = Counter(self._core[cpu] for cpu in self.cpus)
        self._of_node = Counter(self._node[cpu] for cpu in self.cpus)

    def take(self) -> None:
        """What completes a core; else of the emptiest node, of the largest core."""
        best = min(self.free, key=lambda n: (not self._of_core[self._core[n]], self._filled(n), -self._size(n), n))
        self.free.remove(best)
        self.cpus.add(best)
        self._count(best, 1)

    def leave(self) -> None:
        """What is left of a core that is broken up already; else of the fullest node."""
        worst = min(self.cpus, key=lambda n: (self._of_core[self._core[n]] == self._size(n) > 1, -self._filled(n), -n))
        self.cpus.remove(worst)
        self.free.add(worst)
        self._count(worst, -1)

    def _count(self, cpu: int, by: int) -> None:
        self._of_core[self._core[cpu]] += by
        self._of_node[self._node[cpu]] += by

    def _size(self, cpu: int) -> int:
        return self._sizes[self._core[cpu]]

    def _filled(self, cpu: int) -> float:
        node = self._node[cpu]
        return self._of_node[node] / self._rooms[node]
