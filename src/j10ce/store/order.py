"""Keys in order, kept so: whoever lists many objects again and again must not pay for sorting them each time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from operator import attrgetter

from j10ce.model.stored import Key

_namespace = attrgetter("namespace")


class Order:
    """The keys of a mapping of one kind, ordered by namespace and name from the first time on that someone asks."""

    def __init__(self, held: Mapping[Key, object]) -> None:
        self._held = held
        self._keys: list[Key] | None = None

    def within(self, namespace: str | None) -> list[Key]:
        """Those of one namespace; None for all."""
        if self._keys is None:
            self._keys = sorted(self._held)
        if namespace is None:
            return self._keys
        first = bisect_left(self._keys, namespace, key=_namespace)
        return self._keys[first : bisect_right(self._keys, namespace, lo=first, key=_namespace)]

    def moved(self, key: Key) -> None:
        """To be called after this key came into the mapping, left it, or has another value."""
        keys = self._keys
        if keys is None or len(keys) == len(self._held):
            return
        at = bisect_left(keys, key)
        if key in self._held:
            keys.insert(at, key)
        else:
            del keys[at]
