"""What a cgroup may do with each disk: caps, weight and latency, in the version that the controller is mounted as."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from j10ce.errors import Unsupported
from j10ce.kernel.backend import Backend, Instanced
from j10ce.kernel.cgroup.spelling import number
from j10ce.kernel.disk.controller import IoController, place
from j10ce.kernel.disk.lines import by_disk, limit, pairs
from j10ce.model.knob import FILES, KNOBS, Setting, Support, Value, render
from j10ce.model.machine.disk import parse_number
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

WEIGHT: Final = "io.weight"
LATENCY: Final = "io.latency"
MAX: Final = "io.max"
MOST_RATE: Final = float(2**63 - 1)
LEAST: Final = 2  # cgroup v2 takes no less
MOST_OPS: Final = float(2**32 - 2)  # the kernel counts them in 32 bits, and the highest is no limit
_BFQ_V2: Final = "io.bfq.weight"
_BFQ_MOST: Final = 1000
_MIDDLE: Final = 100  # a weight that is the same for both
_DEFAULT: Final = "default "
_BFQ_WITNESS: Final = ("blkio.bfq.io_service_bytes", "BFQ (CONFIG_BFQ_GROUP_IOSCHED, or modprobe bfq)")

Answer = Applied | Refused | Gone


class DiskLine(NamedTuple):
    """How one knob is spelled in a file with a line for each disk."""

    name: str
    read: Callable[[str], Value]  # of what follows the number
    spell: Callable[[float], str]
    unset: Value  # of a disk without a line


class DiskFiles:
    """Knobs with a value for each disk, and the weight that counts on all of them."""

    def __init__(self, io: IoController) -> None:
        self._io = io
        self._version = io.version
        self._lines = _V1 if self._version == 1 else _V2
        self._knobs = [k for k in KNOBS.values() if k.on == FILES]

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        """Disks of which something is said; of all others what nobody limits holds."""
        if (line := self._lines.get(knob)) is None:
            return ()
        said = by_disk(self._io.read(place(at), line.name) or "")
        return tuple(n for n, rest in said.items() if line.read(rest) != line.unset)

    def quantise(self, s: Setting, v: Value, /) -> Value:
        if isinstance(v, str | frozenset):
            return v
        if s.knob == WEIGHT:
            weight = float(min(10_000, max(1, round(v))))
            return _from_bfq(_to_bfq(weight)) if self._version == 1 else weight
        if s.knob == LATENCY:
            return float(math.floor(v)) if math.isfinite(v) else 0.0
        most = MOST_OPS if s.knob.endswith("iops") else MOST_RATE
        return math.inf if v > most else float(max(LEAST, math.floor(v)))

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        if s.knob == WEIGHT:
            return self._weight(place(at))
        line = self._line(s)
        text = self._io.read(place(at), line.name)
        if text is None:
            return None
        said = by_disk(text)
        return line.read(said[s.instance]) if s.instance in said else line.unset

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        if isinstance(v, str | frozenset):
            return Refused(f"{s.knob} takes a number, not {render(s.knob, v)}")
        wanted = self.quantise(s, v)
        if s.knob == WEIGHT:
            return self._write_weight(number(wanted), place(at))
        if parse_number(s.instance) is None:
            return Refused(f"{s.knob} is set for a disk, by its number such as 8:0, and {s.instance!r} is none")
        return self._put(s, self._line(s), number(wanted), at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        """The value: a line that was not there is spelled as one that limits nothing."""
        value = self.read(s, at)
        return None if value is None else msgspec.json.encode("max" if value == math.inf else value).decode()

    def restore(self, s: Setting, text: str, at: Handle, /) -> Answer:
        value = msgspec.json.decode(text, type=float | str)
        return self.write(s, math.inf if isinstance(value, str) else value, at)

    def _put(self, s: Setting, line: DiskLine, value: float, at: Handle) -> Answer:
        answer = self._io.write(place(at), line.name, f"{s.instance} {line.spell(value)}")
        if isinstance(answer, Refused):
            return self._explained(answer, s, at)
        held = self.read(s, at) if answer is None else None
        return Gone() if held is None else Applied(held)

    def _explained(self, answer: Refused, s: Setting, at: Handle) -> Refused:
        if not self._io.has_disk(s.instance):
            return Refused(f"cannot write {s.name} to {place(at)}: this machine has no disk {s.instance}")
        if "ENODEV" in answer.reason:
            return Refused(f"{answer.reason}; {s.instance} is a partition: name its whole disk")
        return answer

    def _weight(self, path: str) -> Value | None:
        if self._version == 1:
            held = self._io.read(path, KNOBS[WEIGHT].v1)
            return _from_bfq(int(held)) if held else None
        text = self._io.read(path, WEIGHT)
        first = next((line for line in (text or "").split("\n") if line.startswith(_DEFAULT)), "")
        return float(first.removeprefix(_DEFAULT)) if first else None

    def _write_weight(self, weight: float, path: str) -> Answer:
        spelled = {WEIGHT: f"{weight:.0f}", _BFQ_V2: f"{_to_bfq(weight)}"}
        if self._version == 1:
            spelled = {KNOBS[WEIGHT].v1: f"{_to_bfq(weight)}"}
        elif self._io.read(path, _BFQ_V2) is None:
            del spelled[_BFQ_V2]
        for name, text in spelled.items():
            if answer := self._io.write(path, name, text):
                return answer
        held = self._weight(path)
        return Gone() if held is None else Applied(held)

    def _line(self, s: Setting) -> DiskLine:
        if s.knob not in self._lines:
            raise Unsupported(s.knob, needs=self._support[s.knob].needs if s.knob in self._support else "a disk")
        return self._lines[s.knob]

    @cached_property
    def _support(self) -> Mapping[str, Support]:
        return {k.name: self._judge(k.name) for k in self._knobs}

    def _judge(self, knob: str) -> Support:
        if self._version is None:
            return Support(False, needs="the io controller of cgroup v2, or blkio of v1, mounted")
        via = f"cgroup{self._version}"
        if self._version == 1 and knob == LATENCY:
            return Support(False, via, needs="cgroup v2 and a kernel with CONFIG_BLK_CGROUP_IOLATENCY", instead=WEIGHT)
        if knob == WEIGHT:
            return self._judge_weight(via)
        there, name = self._example(), self._lines[knob].name
        ok = there is None or self._io.read(there, name) is not None
        option = "BLK_CGROUP_IOLATENCY" if knob == LATENCY else "BLK_DEV_THROTTLING"
        return Support(ok, via, needs="" if ok else f"a kernel with CONFIG_{option}")

    def _judge_weight(self, via: str) -> Support:
        """The root shows what it is made of: BFQ's counters on v1, io.cost on v2."""
        witness, needs = ("io.cost.qos", "CONFIG_BLK_CGROUP_IOCOST") if self._version == 2 else _BFQ_WITNESS
        name = WEIGHT if self._version == 2 else KNOBS[WEIGHT].v1
        ok = any(self._io.read(*where) is not None for where in (("", witness), (self._example() or "", name)))
        return Support(ok, via, needs="" if ok else f"a kernel with {needs}")

    def _example(self) -> str | None:
        """A cgroup that shows the files: v1's root has them, on v2 those to which it is passed on."""
        if self._version == 1:
            return ""
        return next((name for name in self._io.children() if self._io.read(name, "io.stat") is not None), None)


def _to_bfq(weight: float) -> int:
    """BFQ knows 1 to 1000: below the middle as it is, above it the same part of the way up, as systemd does it."""
    if weight <= _MIDDLE:
        return max(1, round(weight))
    return _MIDDLE + round((weight - _MIDDLE) * (_BFQ_MOST - _MIDDLE) / (KNOBS[WEIGHT].high - _MIDDLE))


def _from_bfq(weight: int) -> float:
    if weight <= _MIDDLE:
        return float(weight)
    return float(_MIDDLE + round((weight - _MIDDLE) * (KNOBS[WEIGHT].high - _MIDDLE) / (_BFQ_MOST - _MIDDLE)))


def _v1_cap(knob: str) -> DiskLine:
    """There 0 takes the line away."""
    return DiskLine(KNOBS[knob].v1, limit, lambda v: "0" if v == math.inf else f"{v:.0f}", math.inf)


def _v2_cap(knob: str) -> DiskLine:
    key = knob.rpartition(".")[2]
    return DiskLine(
        MAX,
        lambda rest: limit(pairs(rest).get(key)),
        lambda v: f"{key}={'max' if v == math.inf else f'{v:.0f}'}",
        math.inf,
    )


def _target(rest: str) -> Value:
    """`target=5000` µs."""
    held = limit(pairs(rest).get("target"))
    return held if math.isfinite(held) else 0.0


_CAPS: Final = tuple(k.name for k in KNOBS.values() if k.line == MAX)
_V1: Final[Mapping[str, DiskLine]] = {knob: _v1_cap(knob) for knob in _CAPS}
_V2: Final[Mapping[str, DiskLine]] = {
    **{knob: _v2_cap(knob) for knob in _CAPS},
    LATENCY: DiskLine(LATENCY, _target, lambda v: f"target={v:.0f}", 0.0),
}


def _conforms(b: DiskFiles) -> tuple[Backend, Instanced]:
    return b, b
