"""Sensors and back ends of other distributions. They run in the agent itself, on the ring's thread: trusted code.

A helper process would cost a crossing for every sample and every write. So one that hangs holds up the ring, and one
that crashes the interpreter ends the agent; one that raises is contained, and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

import structlog

from j10ce.agent.plugins.installed import BACKENDS, SENSORS, installed, made
from j10ce.errors import QosError
from j10ce.kernel.backend import Backend
from j10ce.model.knob import KNOBS, Setting, Support, Value
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle, Workload
from j10ce.observe.sensor import Sample, Sensor

T = TypeVar("T")
log = structlog.get_logger()


def sensors(disabled: Collection[str] = (), points: Mapping[str, str] | None = None) -> list[Sensor]:
    """Those that are installed; one that cannot be loaded says so whenever it is asked."""
    every = installed(SENSORS) if points is None else points
    return [PluginSensor(name, where) for name, where in every.items() if name not in disabled]


def backends(disabled: Collection[str] = (), points: Mapping[str, str] | None = None) -> list[Backend]:
    """Likewise. They come after those that are built in: a knob that this machine has already is not theirs."""
    every = installed(BACKENDS) if points is None else points
    return [PluginBackend(name, where) for name, where in every.items() if name not in disabled]


class PluginSensor:
    """The observer contains what raises, and goes on with the others."""

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self._where = where
        self._inner: Sensor | None = None

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        if self._inner is None:
            self._inner = made(self._where)
        return self._inner.sample(now, workloads)


class PluginBackend:
    """Whatever it raises is a refusal; before it has answered for the first time it has no knobs."""

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self._inner: Backend | None = None
        self._fault = ""
        try:
            self._inner = made(where)
        except Exception as e:
            self._fault = self._complaint(e)

    def knobs(self) -> Mapping[str, Support]:
        """Those of the table; where it fails, one line of the doctor says so."""
        try:
            offered = dict(self._own.knobs())
        except Exception as e:
            return {f"back end {self.name}": Support(False, needs=f"a plugin that works; {self._complaint(e)}")}
        if strange := sorted(offered.keys() - KNOBS.keys()):
            log.warning("backend.unknown_knobs", backend=self.name, knobs=strange)
        return {name: support for name, support in offered.items() if name in KNOBS}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        try:
            return self._own.quantise(s, v)
        except Exception as e:
            self._complaint(e)
            return v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        return self._asked(lambda: self._own.read(s, at))

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        return self._tried(lambda: self._own.write(s, v, at))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        return self._asked(lambda: self._own.save(s, at))

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        return self._tried(lambda: self._own.restore(s, text, at))

    @property
    def _own(self) -> Backend:
        if self._inner is None:
            raise QosError(self._fault)
        return self._inner

    def _asked(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except Exception as e:
            raise QosError(self._complaint(e)) from e

    def _tried(self, what: Callable[[], T]) -> T | Refused:
        try:
            return what()
        except Exception as e:
            return Refused(self._complaint(e))

    def _complaint(self, error: Exception) -> str:
        """What went wrong, in the log once for each complaint."""
        if isinstance(error, QosError):
            return str(error)
        complaint = f"back end {self.name}: {type(error).__name__}: {error}"
        if complaint != self._fault:
            log.warning("backend.fail", backend=self.name, error=complaint)
            self._fault = complaint
        return complaint


def _conforms(sensor: PluginSensor, backend: PluginBackend) -> tuple[Sensor, Backend]:
    return sensor, backend
