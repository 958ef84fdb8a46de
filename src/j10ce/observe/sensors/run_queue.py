"""How long the threads of a workload wait for a CPU, by `/proc/<tid>/schedstat`: where its cgroup has no pressure file.

Pressure is one file of a workload, this one of every thread. So it is read only of workloads that are looked at
closely, and of at most 32 threads of each: where there are more, every nth stands for n.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from j10ce.host.files import Files, read_whole
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import CLOSE_EVERY

MOST_THREADS: Final = 32


class RunQueueSensor:
    name = "run-queue"

    def __init__(
        self, hierarchies: Hierarchies, files: Files, closely: Callable[[], Collection[TargetId]], proc: str = "/proc"
    ) -> None:
        self._hierarchies = hierarchies
        self._files = files
        self._closely = closely
        self._proc = proc
        self._waited: dict[TargetId, dict[int, int]] = {}  # ns of each thread, ever
        self._read_at: dict[TargetId, float] = {}
        self._sampled = 0

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterator[Sample]:
        self._sampled += 1
        if self._sampled % CLOSE_EVERY:
            return
        closely = self._closely()
        blind = [w for w in workloads if w.target in closely and not self._has_pressure(w)]
        for gone in self._waited.keys() - {w.target for w in blind}:
            del self._waited[gone], self._read_at[gone]
        for w in blind:
            if (wait := self._wait(now, w)) is not None:
                yield Sample(w.target, "cpu.wait", wait)

    def _has_pressure(self, w: Workload) -> bool:
        if self._hierarchies.unified is None:
            return False
        return bool(self._files.read(self._hierarchies.file(UNIFIED, w.handle.path_of(UNIFIED), "cpu.pressure")))

    def _wait(self, now: float, w: Workload) -> float | None:
        """Seconds per second since the last look, of the threads that were there then and are still."""
        threads = self._threads(w)
        step = max(1, -(-len(threads) // MOST_THREADS))
        waited = {tid: ns for tid in threads[::step] if (ns := self._nanoseconds(tid)) is not None}
        before, since = self._waited.get(w.target), self._read_at.get(w.target, now)
        self._waited[w.target], self._read_at[w.target] = waited, now
        if before is None or now <= since:
            return None
        grown = sum(max(0, ns - before[tid]) for tid, ns in waited.items() if tid in before)
        return grown * step / 1e9 / (now - since)

    def _threads(self, w: Workload) -> list[int]:
        """Of its own cgroup and those of its parts, in the order of their numbers: picks stay the same."""
        version = self._hierarchies.version("cpu")
        if version is None:
            return []
        name = "tasks" if version == 1 else "cgroup.threads"
        paths = {h.path_of("cpu") for h in (w.handle, *(p.handle for p in w.parts))}
        lists = [read_whole(self._hierarchies.file("cpu", path, name)) or b"" for path in paths if path]
        return sorted({int(tid) for text in lists for tid in text.split()})

    def _nanoseconds(self, tid: int) -> int | None:
        """The second of three numbers: time on a CPU, time waiting for one, times on one. None: it ended."""
        words = (read_whole(f"{self._proc}/{tid}/schedstat") or b"").split()
        return int(words[1]) if len(words) == 3 else None


_: type[Sensor] = RunQueueSensor
