"""Numbers for the resources that pods ask for. They are for life: a resource that is new gets the next one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CPU, MEMORY, STORAGE, PODS = range(4)
FIRST: Final = ("cpu", "memory", "ephemeral-storage", "pods")


class Columns:
    def __init__(self) -> None:
        self.names: list[str] = list(FIRST)
        self._number = {name: n for n, name in enumerate(FIRST)}

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """Of a resource, which has one from now on."""
        number = self._number.get(name)
        if number is None:
            number = self._number[name] = len(self.names)
            self.names.append(name)
        return number

    def vector(self, amounts: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        """(number, amount) of each."""
        return [(self.number(name), amount) for name, amount in amounts]
