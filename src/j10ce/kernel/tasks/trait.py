"""What one knob is to a task. A trait knows how it is read and given; who has it is the back end's affair."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from j10ce.model.knob import Support
from j10ce.model.plan import Refused

TaskValue: TypeAlias = str | float


class Trait(Protocol):
    """All methods run on the kernel thread, and take many tasks at once: a workload may have thousands."""

    knob: str
    processes: bool  # a process has it as a whole; else every thread has its own
    default: TaskValue  # what a task has to which nobody gave anything

    def support(self) -> Support:
        """Probed once; never raises."""
        ...

    def quantise(self, value: TaskValue, /) -> TaskValue:
        """What the kernel will make of a value. Pure and idempotent."""
        ...

    def read(self, tasks: Collection[int], /) -> Mapping[int, TaskValue]:
        """What each of them has; without those that are gone."""
        ...

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        """Give it to each of them; those that refuse it, and why. One that is gone refuses nothing."""
        ...


@runtime_checkable
class Recalls(Protocol):
    """A trait that has to learn what the kernel calls a value."""

    def recall(self, tasks: Collection[int], value: TaskValue, /) -> None:
        """An agent before this one gave these the value. Changes nothing on the machine."""
        ...
