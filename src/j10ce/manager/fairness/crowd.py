"""Who is connected: few that nobody knows, and of each caller that is known a number that it can need."""

from __future__ import annotations

from typing import Final, Protocol

from j10ce.manager.identity import Caller, Role

MOST_UNKNOWN: Final = 4096  # connections whose sender is not known yet
MOST_UNKNOWN_OF_ONE: Final = 512  # of them, from one address
MOST_OF_NODE: Final = 32  # connections of one caller that is known
MOST_OF_PERSON: Final = 512


class Connection(Protocol):
    def turn_away(self) -> None:
        """Close it at once, whatever it waits for."""


class Members:
    """Connections by whose they are; the longest here first."""

    def __init__(self) -> None:
        self._whose: dict[Connection, str] = {}
        self._of: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._whose)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._whose

    def add(self, connection: Connection, key: str) -> None:
        self._whose[connection] = key
        self._of.setdefault(key, {})[connection] = None

    def remove(self, connection: Connection) -> None:
        key = self._whose.pop(connection, None)
        if key is not None:
            here = self._of[key]
            del here[connection]
            if not here:
                del self._of[key]

    def count(self, key: str) -> int:
        return len(self._of.get(key, ()))

    def turn_first_away(self, key: str | None = None) -> None:
        """The longest here, of those of `key`."""
        first = next(iter(self._whose if key is None else self._of[key]))
        self.remove(first)
        first.turn_away()


class Crowd:
    """The connections of one port. Where too many callers are not known yet, the one that has been silent for longest
    makes room: who has a token shows it at once. Who is known makes room for itself."""

    def __init__(self) -> None:
        self._unknown, self._known = Members(), Members()

    def __len__(self) -> int:
        """Those that are not known yet."""
        return len(self._unknown)

    def enter(self, connection: Connection, source: str) -> None:
        self._unknown.add(connection, source)
        if self._unknown.count(source) > MOST_UNKNOWN_OF_ONE:
            self._unknown.turn_first_away(source)
        elif len(self._unknown) > MOST_UNKNOWN:
            self._unknown.turn_first_away()

    def known(self, connection: Connection, caller: Caller) -> None:
        """Someone showed who it is; the first one counts."""
        if connection not in self._unknown:
            return
        self._unknown.remove(connection)
        if caller.role is Role.ADMIN:  # always works
            return
        self._known.add(connection, caller.name)
        if self._known.count(caller.name) > (MOST_OF_NODE if caller.role is Role.NODE else MOST_OF_PERSON):
            self._known.turn_first_away(caller.name)

    def leave(self, connection: Connection) -> None:
        self._unknown.remove(connection)
        self._known.remove(connection)
