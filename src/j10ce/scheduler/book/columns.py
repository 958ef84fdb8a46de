"""Numbers for the resources that pods ask for. They are for life: a resource that is new gets the next one.

Whoever may create a pod may ask for resources by any name, and each would be a column of every node: beyond so many,
names that no node offers share one, of which no node has any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CPU, MEMORY, STORAGE, PODS = range(4)
FIRST: Final = ("cpu", "memory", "ephemeral-storage", "pods")
MOST_ASKED: Final = 128  # columns, before names that no node offers share one
SHARED: Final = "other extended resources"


class Columns:
    def __init__(self) -> None:
        self.parted = 0  # how often a name that may have been shared got a number of its own
        self.names: list[str] = list(FIRST)
        self._number = {name: n for n, name in enumerate(FIRST)}

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """Of a resource, which has one from now on."""
        number = self._number.get(name)
        if number is None:
            if len(self.names) < MOST_ASKED:
                return self._new(name)
            number = self._number.get(SHARED)
            return self._new(SHARED) if number is None else number
        return number

    def offer(self, names: Iterable[str]) -> None:
        """By a node: each gets a number of its own. Whoever has numbers asks for them again where `parted` moves."""
        for name in names:
            if name not in self._number:
                self.parted += len(self.names) >= MOST_ASKED
                self._new(name)

    def vector(self, amounts: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        """(number, amount) of each."""
        sums = dict[int, int]()
        for name, amount in amounts:
            number = self.number(name)
            sums[number] = sums.get(number, 0) + amount
        return list(sums.items())

    def _new(self, name: str) -> int:
        number = self._number[name] = len(self.names)
        self.names.append(name)
        return number
