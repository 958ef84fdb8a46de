"""The seam between the observer and what it samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload


class Sample(NamedTuple):
    """One measured number; `metric` is a key of `model.snapshot.METRICS` or the sensor's own."""

    target: TargetId
    metric: str
    value: float


class Sensor(Protocol):
    """Reads one source. The composition root (`agent/build.py`) hands the observer its sensors."""

    name: str

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        """One sample per series that has something to say; a workload that vanished yields nothing.

        Called on every tick from the ring's thread; must not block.
        """
        ...


@runtime_checkable
class OffCgroups(Protocol):
    """A sensor of targets that are no cgroups."""

    @property
    def targets(self) -> Collection[TargetId]:
        """Those that it sees; what was measured of others is forgotten."""
        ...
