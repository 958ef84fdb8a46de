"""What the processes of a scenario find on the machine, and what an agent is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from j10ce.bench.scratch import Scratch
from j10ce.model.kinds import NodeStrategySpec


class Scene(NamedTuple):
    service: str = ""  # where the service's requests go
    antagonists: str = ""  # and what the others do
    promised: Mapping[str, str] = {}  # to the service, beside CPU time
    strategy: NodeStrategySpec = NodeStrategySpec()
    limit: int = 0  # bytes of memory, for all of them together
    fresh: Callable[[], None] | None = None  # before each turn: nothing of the last one is in memory
    used_s: Callable[[], float] | None = None  # how long it was in use so far; absent: it is CPUs that are divided


class Staging(Protocol):
    """Makes it; raises Unsupported, with what it needs, where this machine has no such thing."""

    def __call__(self, scratch: Scratch, /) -> AbstractContextManager[Scene]: ...
