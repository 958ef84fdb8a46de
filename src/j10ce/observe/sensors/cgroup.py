"""Samples of cgroups, v1 and v2 side by side: CPU, throttling, memory, pressure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import Final, NamedTuple

from j10ce.host.files import Files
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.model import knob
from j10ce.model.knob import TargetId
from j10ce.model.workload import Handle, Part, Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import CLOSE_EVERY, Rate, pick, transferred
from j10ce.observe.sensors.psi import PRESSURES, total_us

# memory.stat and the three pressure files cost five times as much as all others together. So each workload has them
# read on every tenth sample only, and on v1 cpu.stat while there is no quota. Workloads take turns, so that all
# samples cost the same.
SLOW_EVERY: Final = 10


class CgroupSensor:
    """Every workload, its parts, and all of `others` on every sample: our own groups.

    A part with a limit has its CPU time and throttling read on every sample, since its own quota throttles it; all else
    of parts in their turn only, and pressure of none.
    """

    name = "cgroup"

    def __init__(
        self,
        hierarchies: Hierarchies,
        files: Files,
        others: Callable[[], Mapping[TargetId, Handle]] = dict,
        closely: Callable[[], Collection[TargetId]] = frozenset,
        asked: Callable[[], Collection[TargetId]] = frozenset,
    ) -> None:
        """`asked`: whose memory a controller wants to have measured on this very sample."""
        self._hierarchies = hierarchies
        self._files = files
        self._others = others
        self._closely = closely
        self._asked = asked
        self._meters: dict[TargetId, _Meter] = {}
        self._parts: dict[TargetId, _Parts] = {}
        self._turns = count()
        self._sampled = 0

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        self._sampled += 1
        samples: list[Sample] = []
        handles, others = {w.target: w.handle for w in workloads}, self._others()
        closely, asked = self._closely(), self._asked()
        for target, handle in (*handles.items(), *others.items()):
            meter = self._meters.get(target)
            if meter is None or (meter.handle is not handle and meter.handle != handle):
                meter = self._replace(target, handle)
            meter.sample(now, samples)
            if meter.turn == self._sampled % SLOW_EVERY or target in others:
                meter.sample_slowly(now, samples)
            elif target in closely and (meter.turn - self._sampled) % CLOSE_EVERY == 0:
                meter.sample_closely(now, samples)
            elif target in asked:
                meter.sample_memory(now, samples)
            if target in asked:
                meter.put_file(samples)
        if len(self._meters) > len(handles) + len(others):
            for gone in self._meters.keys() - handles.keys() - others.keys():
                self._meters.pop(gone).close()
        self._sample_parts(now, workloads, samples)
        return samples

    def _sample_parts(self, now: float, workloads: Collection[Workload], samples: list[Sample]) -> None:
        turn, before = self._sampled % SLOW_EVERY, self._parts
        parts = {w.target: self._of(w, before.get(w.target)) for w in workloads if w.parts}
        for gone in before.keys() - parts.keys():
            before[gone].close()
        self._parts = parts
        for of in parts.values():
            for meter, limited in of.meters:
                if limited or meter.turn == turn:
                    meter.sample_cpu(now, samples)
                if meter.turn == turn:
                    meter.sample_size(samples)

    def _of(self, w: Workload, known: _Parts | None) -> _Parts:
        """The same as long as the parts are; a part that changed is measured afresh."""
        if known is not None:
            if known.parts is w.parts or known.parts == w.parts:
                return known
            known.close()
        targets = [knob.part(w.namespace, w.name, p.name) for p in w.parts]
        return _Parts(
            w.parts,
            [
                (
                    _Meter(target, p.handle, next(self._turns) % SLOW_EVERY, self._hierarchies, self._files),
                    p.limits.cpu != math.inf,
                )
                for target, p in zip(targets, w.parts, strict=True)
            ],
        )

    def _replace(self, target: TargetId, handle: Handle) -> _Meter:
        if old := self._meters.get(target):
            old.close()
        turn = next(self._turns) % SLOW_EVERY
        meter = self._meters[target] = _Meter(target, handle, turn, self._hierarchies, self._files)
        return meter


class _Parts(NamedTuple):
    """The parts of one workload, and what measures each; whether its CPU time is limited."""

    parts: tuple[Part, ...]
    meters: list[tuple[_Meter, bool]]

    def close(self) -> None:
        for meter, _ in self.meters:
            meter.close()


class _Meter:
    """One cgroup: which files tell what, and the last readings of its counters."""

    def __init__(self, target: TargetId, handle: Handle, turn: int, hierarchies: Hierarchies, files: Files) -> None:
        self.handle = handle
        self.turn = turn
        self._target = target
        self._files = files
        self._paths: list[str] = []

        def file(controller: str, v1: str, v2: str = "") -> str:
            """The path of a file; empty where the controller or the file does not exist."""
            version = hierarchies.version(controller)
            name = v1 if version == 1 else v2
            if version is None or not name:
                return ""
            path = hierarchies.file(controller, handle.path_of(controller), name)
            self._paths.append(path)
            return path

        self._cpuacct = file("cpuacct", "cpuacct.usage")
        self._cpu_stat = file("cpu", "cpu.stat", "cpu.stat")
        self._memory = file("memory", "memory.usage_in_bytes", "memory.current")
        self._memory_stat = file("memory", "memory.stat", "memory.stat")
        self._inactive = b"\ntotal_inactive_file " if hierarchies.version("memory") == 1 else b"\ninactive_file "
        of_all = b"\ntotal_" if hierarchies.version("memory") == 1 else b"\n"  # v1 counts those below apart
        self._file_keys = (of_all + (b"cache " if of_all == b"\ntotal_" else b"file "), of_all + b"shmem ")
        self._file: int | None = None  # bytes of page cache, once read
        self._refault_keys = [of_all + b"workingset_refault_%b " % kind for kind in (b"anon", b"file")]
        self._pressures = [
            (f"{p}.pressure", path, Rate()) for p in PRESSURES if (path := file(UNIFIED, "", f"{p}.pressure"))
        ]
        self._io_stat = file("io", "", "io.stat")
        self._usage, self._io, self._refaults, self._scanned = Rate(), Rate(), Rate(), Rate()
        self._periods = self._throttled = -1  # not read yet
        self._capped = False  # has a quota: its periods count
        self._current = 0

    def sample(self, now: float, samples: list[Sample]) -> None:
        read = self._files.read
        if self._cpuacct and (text := read(self._cpuacct)):
            self._put_usage(now, int(text), 1e9, samples)
        if self._cpu_stat and (self._capped or not self._cpuacct) and (text := read(self._cpu_stat)):
            if not self._cpuacct and (usage_us := pick(text, b"usage_usec ")) is not None:
                self._put_usage(now, usage_us, 1e6, samples)
            self._put_throttled(text, samples)
        self._put_current(samples)

    def sample_cpu(self, now: float, samples: list[Sample]) -> None:
        """Of a part: its CPU time, and how often its own quota stopped it."""
        if self._cpuacct and (text := self._files.read(self._cpuacct)):
            self._put_usage(now, int(text), 1e9, samples)
        if self._cpu_stat and (text := self._files.read(self._cpu_stat)):
            if not self._cpuacct and (usage_us := pick(text, b"usage_usec ")) is not None:
                self._put_usage(now, usage_us, 1e6, samples)
            self._put_throttled(text, samples)

    def sample_size(self, samples: list[Sample]) -> None:
        """Of a part: how much memory it has, and how much of that it needs."""
        self._put_current(samples)
        self._put_working_set(samples)

    def sample_memory(self, now: float, samples: list[Sample]) -> None:
        """Whether it could do with less: what is read again, and whether it waits for memory."""
        self._put_reclaim(now, self._put_working_set(samples), samples)
        self._put_pressures(now, [p for p in self._pressures if p[0] == "memory.pressure"], samples)

    def put_file(self, samples: list[Sample]) -> None:
        """Page cache, by what was read of its memory last."""
        if self._file is not None:
            samples.append(Sample(self._target, "memory.file", float(self._file)))

    def sample_slowly(self, now: float, samples: list[Sample]) -> None:
        """After `sample`: the working set is part of what that found."""
        read = self._files.read
        if self._cpuacct and not self._capped and (text := read(self._cpu_stat)):
            self._put_throttled(text, samples)
        self.sample_closely(now, samples)

    def sample_closely(self, now: float, samples: list[Sample]) -> None:
        """What tells whether it suffers: what it waits for, and what its memory has to be read again."""
        self._put_reclaim(now, self._put_working_set(samples), samples)
        self._put_pressures(now, self._pressures, samples)
        if self._io_stat and (text := self._files.read(self._io_stat)) is not None:
            self._put("io.usage", self._io.of(now, transferred(text)), samples)

    def _put_pressures(self, now: float, pressures: list[tuple[str, str, Rate]], samples: list[Sample]) -> None:
        for metric, path, rate in pressures:
            stalled = rate.of(now, total_us(text)) if (text := self._files.read(path)) else None
            if stalled is not None:
                samples.append(Sample(self._target, metric, min(1.0, stalled / 1e6)))

    def _put_current(self, samples: list[Sample]) -> None:
        if self._memory and (text := self._files.read(self._memory)):
            self._current = int(text)
            samples.append(Sample(self._target, "memory.current", float(self._current)))

    def _put_working_set(self, samples: list[Sample]) -> bytes:
        """Of what was current; returns the file that says so."""
        text = self._files.read(self._memory_stat) if self._memory_stat else None
        if text and (inactive := pick(text, self._inactive)) is not None:
            samples.append(Sample(self._target, "memory.working_set", float(max(0, self._current - inactive))))
        return text or b""

    def _put_reclaim(self, now: float, memory_stat: bytes, samples: list[Sample]) -> None:
        refaults = [n for key in self._refault_keys if (n := pick(memory_stat, key)) is not None]
        if refaults:
            self._put("memory.refaults", self._refaults.of(now, sum(refaults)), samples)
        if (scanned := pick(memory_stat, b"\npgscan_direct ")) is not None:
            self._put("memory.direct_reclaim", self._scanned.of(now, scanned), samples)
        cached, shared = (pick(memory_stat, key) for key in self._file_keys)
        self._file = None if cached is None else max(0, cached - (shared or 0))

    def _put(self, metric: str, value: float | None, samples: list[Sample]) -> None:
        if value is not None:
            samples.append(Sample(self._target, metric, value))

    def _put_usage(self, now: float, used: int, per_s: float, samples: list[Sample]) -> None:
        rate = self._usage.of(now, used)
        if rate is not None:
            samples.append(Sample(self._target, "cpu.usage", rate / per_s))

    def _put_throttled(self, text: bytes, samples: list[Sample]) -> None:
        periods, throttled = pick(text, b"nr_periods "), pick(text, b"nr_throttled ")
        if periods is None or throttled is None:
            return
        known, passed, hit = self._periods >= 0, periods - self._periods, throttled - self._throttled
        self._periods, self._throttled = periods, throttled
        self._capped = known and passed > 0
        if known and passed >= 0 and hit >= 0:
            samples.append(Sample(self._target, "cpu.throttled", min(1.0, hit / passed) if passed else 0.0))

    def close(self) -> None:
        for path in self._paths:
            self._files.drop(path)


_: type[Sensor] = CgroupSensor
