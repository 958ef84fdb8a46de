"""The seam of leadership: of all managers on one store, one runs the keepers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

Work = Callable[[], Awaitable[None]]


class Elector(Protocol):
    leader: bool  # whether this process leads

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; empty during an election."""
        ...

    async def lead(self, work: Work) -> None:
        """Run `work` while this process leads, cancel it when leadership is lost, start it again when it is back.

        Runs until cancelled, and then hands leadership over at once. A leader that cannot renew its claim cancels
        `work` before another process can lead. When `work` ends or raises by itself, so does `lead`.
        """
        ...


@runtime_checkable
class Shared(Protocol):
    """A store that several processes may use at a time."""

    def elector(self, identity: str) -> Elector: ...


class Alone:
    """The elector of a store that serves one process: it always leads."""

    def __init__(self, identity: str) -> None:
        self.leader = True
        self.holder = identity

    async def lead(self, work: Work) -> None:
        await work()


_: type[Elector] = Alone
