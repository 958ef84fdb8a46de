"""Where an arm puts processes, and what it does while they run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol


class Crowd(NamedTuple):
    """Processes of one measurement, before they do anything."""

    service: int
    antagonists: Sequence[int]
    strangers: bool = False  # antagonists that nobody manages: no arm puts them anywhere

    @property
    def managed(self) -> Sequence[int]:
        return () if self.strangers else self.antagonists


class Attended(Protocol):
    """What goes on while an arm is measured."""

    def tend(self) -> None:
        """About once a second."""

    def refaults(self) -> int | None:
        """Pages that the service has read again so far; None where nobody counts them."""


class Seating(Protocol):
    """Puts the processes of a measurement where they belong; on leaving, nothing of it is left but the processes."""

    def around(self, crowd: Crowd, /) -> AbstractContextManager[Attended]: ...


class Untended:
    def tend(self) -> None:
        """Nothing goes on."""

    def refaults(self) -> int | None:
        return None


class AsTheyAre:
    """Everybody stays in the cgroup that this command is in."""

    def around(self, crowd: Crowd, /) -> AbstractContextManager[Attended]:
        return nullcontext(Untended())


_: Seating = AsTheyAre()
