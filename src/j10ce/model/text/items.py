"""Lists of what is read, of which wrong items are cut out one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Items(list[Any]):
    """A list that remembers where its items were, once one is cut: most lists of most inputs are never looked at."""

    __slots__ = ("_origin",)

    @property
    def origin(self) -> Sequence[int]:
        """Where each item was."""
        return getattr(self, "_origin", None) or range(len(self))

    def cut(self, index: int) -> Any:
        self._origin = [*self.origin]
        del self._origin[index]
        return self.pop(index)
