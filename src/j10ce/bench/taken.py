"""What a run is and what it yields: the nouns that measuring, counting and showing share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

Role = Literal["baseline", "other", "ours", "ceiling"]
ALONE: Final = "alone"


class Load(Struct, frozen=True, kw_only=True):
    """The service and who competes with it."""

    rate: float  # requests a second, at most
    least_rate: float | None = None  # at the beginning and at the end of a day; absent: the rate stands still
    seconds: float
    workers: int
    cpu_us: int  # of each request
    antagonist: str
    antagonists: int
    strangers: bool = False  # nobody manages them
    work: str = "cpu"  # what a request does
    warm: int = 0  # seconds at the beginning of a turn that do not count

    @property
    def demand(self) -> float:
        """CPUs that the service needs at most."""
        return self.rate * self.cpu_us / 1e6


class Arm(Struct, frozen=True):
    """One way to run the same service beside the same antagonists."""

    name: str
    means: str
    role: Role = "other"
    beside: bool = True  # antagonists run
    priority: int = 0  # of SCHED_FIFO


class Taken(Struct, frozen=True, kw_only=True):
    """One arm in one round."""

    seconds: Sequence[Sequence[float]]  # latencies, by the second in which the request was due
    busy: float  # share of the machine's CPU time
    filled: float | None = None  # of the CPU time that the others left, the share that best effort used
    others: float = 0.0  # share of the machine that neither this run nor idleness had
    cost: float | None = None  # CPUs that our agent used
    mib: float | None = None  # memory of our agent
    unserved: int = 0  # requests that were given up
    served: float = 0.0  # a second
    refaults: int | None = None  # pages that the service had to read again


class Missing(Struct, frozen=True):
    """An arm that this machine cannot run."""

    name: str
    why: str
