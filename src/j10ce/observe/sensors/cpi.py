"""Cycles per instruction of workloads that are looked at closely: it rises when others fill caches and memory buses.

Each workload takes two descriptors of every CPU. So only as many have counters as fit a budget; the others have none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

from j10ce.host.files import ABSENT
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.host.perf import Counts, PerfCounters
from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import CLOSE_EVERY

MOST_DESCRIPTORS: Final = 512
LEAST_INSTRUCTIONS: Final = 1_000_000  # of fewer, the first caches misses of a wake-up are all that shows


class Counter(Protocol):
    """Counts what the tasks of one cgroup do."""

    def read(self) -> Counts: ...
    def close(self) -> None: ...


Provider = Callable[[str, frozenset[int]], Counter]  # of the directory of a cgroup, on these CPUs


class CpiSensor:
    name = "cpi"

    def __init__(
        self,
        hierarchies: Hierarchies,
        closely: Callable[[], Collection[TargetId]],
        cpus: Callable[[], frozenset[int]],
        provider: Provider = PerfCounters,
    ) -> None:
        self._controller = "perf_event" if hierarchies.version("perf_event") == 1 else UNIFIED
        self._hierarchies = hierarchies
        self._closely = closely
        self._cpus = cpus
        self._provider = provider
        self._counters: dict[TargetId, tuple[str, Counter]] = {}
        self._before: dict[TargetId, Counts] = {}
        self._sampled = 0

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterator[Sample]:
        self._sampled += 1
        if self._sampled % CLOSE_EVERY or self._hierarchies.mount(self._controller) is None:
            return
        self._follow(workloads)
        for target, (_, counter) in self._counters.items():
            before, counts = self._before.get(target), counter.read()
            self._before[target] = counts
            if before is not None and counts.instructions - before.instructions >= LEAST_INSTRUCTIONS:
                cpi = (counts.cycles - before.cycles) / (counts.instructions - before.instructions)
                yield Sample(target, "cpu.cpi", cpi)

    def _follow(self, workloads: Collection[Workload]) -> None:
        """Counters for exactly those that are looked at, as many as the budget allows, in the order of their names."""
        closely, cpus = self._closely(), self._cpus()
        room = MOST_DESCRIPTORS // (2 * max(1, len(cpus)))
        wanted = {w.target: self._directory(w) for w in workloads if w.target in closely}
        wanted = {target: wanted[target] for target in sorted(wanted)[:room]}
        for gone in [t for t, (directory, _) in self._counters.items() if wanted.get(t) != directory]:
            self._counters.pop(gone)[1].close()
            self._before.pop(gone, None)
        for target in wanted.keys() - self._counters.keys():
            self._open(target, wanted[target], cpus)

    def _open(self, target: TargetId, directory: str, cpus: frozenset[int]) -> None:
        try:
            self._counters[target] = (directory, self._provider(directory, cpus))
        except OSError as e:
            if e.errno not in ABSENT:  # it ended, or is not in this hierarchy
                raise

    def _directory(self, w: Workload) -> str:
        return self._hierarchies.directory(self._controller, w.handle.path_of(self._controller))

    def close(self) -> None:
        for _, counter in self._counters.values():
            counter.close()
        self._counters.clear()


_: type[Sensor] = CpiSensor
