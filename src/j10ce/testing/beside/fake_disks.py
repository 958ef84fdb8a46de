"""The controller of disks in memory, with the rules by which the kernel takes or refuses what is written there."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Final, Literal

from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.cost import MODEL, QOS
from j10ce.kernel.disk.estate import DiskEstate
from j10ce.kernel.disk.lines import by_disk
from j10ce.model.knob import KNOBS, TargetId, disk
from j10ce.model.plan import Gone, Refused
from j10ce.model.workload import Handle

_THROTTLES: Final = tuple(k.v1 for k in KNOBS.values() if k.line == "io.max")
_KEYS: Final = ("rbps", "wbps", "riops", "wiops")
_GUESS: Final = "ctrl=auto model=linear rbps=174019176 rseqiops=41708 rrandiops=370 wbps=178075866 wseqiops=42705"
_UNDIVIDED: Final = "enable=0 ctrl=auto rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 max=10000.00"


class FakeIo(IoController):
    """`latency`: the kernel was built with io.latency; `partitions`: numbers that the kernel takes no line of."""

    def __init__(
        self,
        version: Literal[1, 2] = 2,
        *,
        disks: Collection[str] = ("8:0", "8:16"),
        partitions: Collection[str] = ("8:1",),
        latency: bool = True,
        cost: bool = True,
    ) -> None:
        self._version: Literal[1, 2] = version
        self._latency, self._cost = latency, cost
        self._next = count(1)
        self.disks = {number: next(self._next) for number in disks}
        self.partitions = set(partitions)
        self.cgroups: dict[str, dict[str, dict[str, str]]] = {"": {}}  # path, file, number
        self.weights: dict[str, int] = {}

    @property
    def version(self) -> Literal[1, 2]:
        return self._version

    def make(self, path: str) -> None:
        self.cgroups[path] = {}
        self.weights[path] = 100

    def remove(self, path: str) -> None:
        self.cgroups.pop(path)

    def replug(self, number: str) -> None:
        """Another disk gets the number."""
        self.unplug(number)
        self.disks[number] = next(self._next)

    def unplug(self, number: str) -> None:
        """What was said of it goes with it."""
        self.disks.pop(number, None)
        for files in self.cgroups.values():
            for said in files.values():
                said.pop(number, None)

    def has_disk(self, number: str) -> bool:
        return number in self.disks or number in self.partitions

    def children(self) -> list[str]:
        return sorted({path.split("/")[0] for path in self.cgroups if path})

    def read(self, path: str, name: str) -> str | None:
        if path not in self.cgroups or name not in self._files(path):
            return None
        if name in ("io.weight", "io.bfq.weight"):
            return f"default {self.weights[path]}"
        if name == KNOBS["io.weight"].v1:
            return str(self.weights[path])
        return "\n".join(f"{number} {rest}" for number, rest in self.cgroups[path].get(name, {}).items())

    def write(self, path: str, name: str, text: str) -> Refused | Gone | None:
        if path not in self.cgroups:
            return Gone()
        if name not in self._files(path):
            return Refused(f"cannot write {name} = {text!r}: {path} has no such file; its controller is not enabled")
        if name.endswith(".weight"):
            return self._weigh(path, name, text)
        ((number, rest),) = by_disk(text).items() or (("", ""),)
        if number not in self.disks:
            return Refused(f"cannot write {name} = {text!r} to {path}: kernel said ENODEV; it is absent")
        said = self.cgroups[path].setdefault(name, {})
        spelled = self._spelled(name, said.get(number, ""), rest)
        if spelled is None:
            return Refused(f"cannot write {name} = {text!r} to {path}: kernel said EINVAL; the value does not fit")
        said[number] = spelled
        if not spelled:
            del said[number]
        return None

    def _files(self, path: str) -> Collection[str]:
        """v2's root has only what is said of disks."""
        if self._version == 1:
            return (*_THROTTLES, "blkio.bfq.io_service_bytes", *([KNOBS["io.weight"].v1] if path else ()))
        if not path:
            return (MODEL, QOS) if self._cost else ()
        latency, weight = (["io.latency"] if self._latency else []), (["io.weight"] if self._cost else [])
        return ("io.max", "io.stat", *latency, *weight)

    def _weigh(self, path: str, name: str, text: str) -> Refused | None:
        most = 1000 if "bfq" in name else 10000
        if not 1 <= int(text) <= most:
            return Refused(f"cannot write {name} = {text!r} to {path}: kernel said ERANGE; the value is out of range")
        self.weights[path] = int(text)
        return None

    def _spelled(self, name: str, before: str, rest: str) -> str | None:
        """What a line becomes; empty: it goes. None: the kernel says no."""
        if name in _THROTTLES:
            return rest.strip("0") and rest if rest.isdecimal() else None
        said = dict(word.partition("=")[::2] for word in rest.split())
        if name == "io.max":
            held = dict.fromkeys(_KEYS, "max") | dict(word.split("=") for word in before.split()) | said
            if held.keys() - set(_KEYS) or "0" in held.values():
                return None
            limited = any(value != "max" for value in held.values())
            return " ".join(f"{k}={held[k]}" for k in _KEYS) if limited else ""
        if name == "io.latency":
            return "" if said["target"] == "0" else f"target={said['target']}"
        guess = dict(word.split("=") for word in (before or (_GUESS if name == MODEL else _UNDIVIDED)).split())
        if name == MODEL and said.get("ctrl") == "auto":
            return _GUESS
        return " ".join(f"{key}={value}" for key, value in (guess | {"ctrl": "user"} | said).items())


class FakeDiskEstate(DiskEstate):
    """The disks of a FakeIo."""

    def __init__(self, io: FakeIo) -> None:
        super().__init__()
        self._io = io

    def targets(self) -> Collection[TargetId]:
        return tuple(disk(number) for number in self._io.disks)

    def identity(self, at: Handle, /) -> int | None:
        return self._io.disks.get(at.path)
