"""What workloads do with each disk, and what each disk does: bytes and operations, and the pace of io.cost.

A workload that never touched a disk has no series. Whoever a law about disks looks at is read on every sample, the
others in turns of ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from j10ce.host.disks import SYS
from j10ce.host.files import Files
from j10ce.host.mounts import IO, Hierarchies
from j10ce.model.knob import TargetId, disk
from j10ce.model.machine.disk import Disk
from j10ce.model.workload import Handle, Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import Rate

KINDS: Final = ("disk.read", "disk.write", "disk.riops", "disk.wiops")
_NUMBER: Final = re.compile(rb"[0-9]{1,7}:[0-9]{1,7}")
_V2: Final[Mapping[bytes, int]] = {b"rbytes": 0, b"wbytes": 1, b"rios": 2, b"wios": 3}
_V1: Final[Mapping[bytes, int]] = {b"Read": 0, b"Write": 1}
TURNS: Final = 10
_SECTOR: Final = 512
_VRATE: Final = b"cost.vrate="
_V1_BYTES, _V1_IOS = "blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"


class Done(NamedTuple):
    """Since the cgroup or the disk began."""

    read: int = 0
    written: int = 0
    reads: int = 0
    writes: int = 0


def io_stat(text: bytes) -> dict[str, Done]:
    """By disk: `8:0 rbytes=4096 wbytes=0 rios=1 …`. Some kernels print numbers of disks without any line end."""
    counts: dict[str, list[int]] = {}
    here: list[int] = []
    for word in text.split():
        if _NUMBER.fullmatch(word):
            here = counts.setdefault(word.decode(), [0, 0, 0, 0])
            continue
        key, _, value = word.partition(b"=")
        if here and key in _V2 and value.isdigit():
            here[_V2[key]] = int(value)
    return {number: Done(*n) for number, n in counts.items() if any(n)}


def blkio(size: bytes, operations: bytes) -> dict[str, Done]:
    """By disk, of cgroup v1: `8:0 Read 4096`, and how many."""
    counts: dict[str, list[int]] = {}
    for offset, text in ((0, size), (2, operations)):
        for line in text.split(b"\n"):
            words = line.split()
            if len(words) == 3 and words[1] in _V1 and words[2].isdigit() and _NUMBER.fullmatch(words[0]):
                counts.setdefault(words[0].decode(), [0, 0, 0, 0])[_V1[words[1]] + offset] = int(words[2])
    return {number: Done(*n) for number, n in counts.items() if any(n)}


def vrates(io_stat_of_root: bytes) -> dict[str, float]:
    """Percent, of the disks that io.cost divides."""
    split = (line.split() for line in io_stat_of_root.split(b"\n") if _VRATE in line)
    said = ((w[0], x.removeprefix(_VRATE)) for w in split if _NUMBER.fullmatch(w[0]) for x in w if x.startswith(_VRATE))
    return {n.decode(): float(v) for n, v in said if re.fullmatch(rb"[0-9]{1,9}(\.[0-9]{1,6})?", v)}


class DiskSensor:
    """`disks`: those of the machine; `closely`: whom to read on every sample."""

    name = "disks"

    def __init__(
        self,
        hierarchies: Hierarchies,
        files: Files,
        disks: Callable[[], Mapping[str, Disk]],
        closely: Callable[[], Collection[TargetId]] = frozenset,
        sys: str = SYS,
    ) -> None:
        self._hierarchies = hierarchies
        self._files = files
        self._disks = disks
        self._closely = closely
        self._sys = sys
        self._version = hierarchies.version(IO)
        self._recursive = self._has_recursive()
        self._meters: dict[TargetId, _DiskMeter] = {}
        self._of_disks: dict[str, _DiskMeter] = {}
        self._sampled = 0

    @property
    def targets(self) -> Collection[TargetId]:
        return [disk(number) for number in self._of_disks]

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterator[Sample]:
        self._sampled += 1
        yield from self._machine(now)
        if self._version is None:
            return
        closely, turn = self._closely(), self._sampled % TURNS
        for place, w in enumerate(workloads):
            if place % TURNS == turn or w.target in closely:
                for target, at in self._places(w):
                    if done := self._read(at):
                        meter = self._meters.setdefault(target, _DiskMeter())
                        yield from meter.samples(now, target, done, self._whole(done))
        if self._meters:
            for gone in self._meters.keys() - {t for w in workloads for t, _ in self._places(w)}:
                del self._meters[gone]

    def _places(self, w: Workload) -> Iterator[tuple[TargetId, Handle]]:
        """On cgroup v1 caps are set on containers, by what each of them does."""
        yield w.target, w.handle
        if self._version == 1 and w.parts:
            yield from zip(w.part_targets, (p.handle for p in w.parts), strict=True)

    def _read(self, at: Handle) -> dict[str, Done]:
        if self._version == 2:
            return io_stat(self._file(at, "io.stat"))
        suffix = "_recursive" if self._recursive else ""
        size = self._file(at, _V1_BYTES + suffix)
        return blkio(size, self._file(at, _V1_IOS + suffix)) if b"Read" in size else {}

    def _file(self, at: Handle, name: str) -> bytes:
        return self._files.read(self._hierarchies.file(IO, at.path_of(IO), name)) or b""

    def _whole(self, done: Collection[str]) -> Collection[str]:
        """An I/O of a volume is counted again at the disks below it: only those that nothing here is made of count."""
        disks = self._disks()
        below = {b for number in done if number in disks for b in disks[number].below}
        return [number for number in done if number not in below]

    def _machine(self, now: float) -> Iterable[Sample]:
        managed = {n: d for n, d in self._disks().items() if d.managed}
        self._of_disks = {n: self._of_disks.get(n) or _DiskMeter() for n in managed}
        for number, meter in self._of_disks.items():
            words = (self._files.read(f"{self._sys}/block/{managed[number].name}/stat") or b"").split()
            if len(words) >= 10 and all(w.isdigit() for w in words[:10]):
                n = [int(w) for w in words[:10]]
                done = Done(n[2] * _SECTOR, n[6] * _SECTOR, n[0], n[4])
                yield from meter.samples(now, disk(number), {number: done}, ())
                if (busy := meter.busy.of(now, n[9])) is not None:
                    yield Sample(disk(number), "disk.busy", min(1.0, busy / 1000))
        if managed and self._version == 2:
            text = self._files.read(self._hierarchies.file(IO, "", "io.stat")) or b""
            for number, vrate in vrates(text).items():
                if number in managed:
                    yield Sample(disk(number), "io.vrate", vrate)

    def _has_recursive(self) -> bool:
        if self._version != 1:
            return False
        return self._files.read(self._hierarchies.file(IO, "", f"{_V1_BYTES}_recursive")) is not None


class _DiskMeter:
    """The last counts of one cgroup, or of one disk."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, int], Rate] = {}
        self.busy = Rate()

    def samples(self, now: float, target: TargetId, done: Mapping[str, Done], whole: Collection[str]) -> list[Sample]:
        """Of each disk that is used, and of all of them; of a disk target, whose `whole` is empty, of itself."""
        of_disk = target.startswith("disk/")
        sums, out, known = [0.0] * len(KINDS), list[Sample](), False
        for number, counts in done.items():
            for n, count in enumerate(counts):
                rate = self._rates.get((number, n))
                if rate is None:
                    rate = self._rates[number, n] = Rate()
                value = rate.of(now, count)
                if value is None:
                    continue
                known = True
                sums[n] += value if number in whole else 0.0
                out.append(Sample(target, KINDS[n] if of_disk else f"{KINDS[n]}[{number}]", value))
        if known and not of_disk:
            out += [Sample(target, kind, total) for kind, total in zip(KINDS, sums, strict=True)]
        return out


_: type[Sensor] = DiskSensor
