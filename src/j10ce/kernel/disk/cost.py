"""io.cost of a disk: its model, and whether the disk is divided by weight. Two files of the root of cgroup v2."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from j10ce.errors import Denied
from j10ce.kernel.backend import Backend
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.lines import by_disk, pairs
from j10ce.model.knob import KNOBS, Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

MODEL: Final = "io.cost.model"
QOS: Final = "io.cost.qos"
# In the order in which the kernel prints them; of these two it prints decimals.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    MODEL: ("ctrl", "model", "rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"),
    QOS: ("enable", "ctrl", "rpct", "rlat", "wpct", "wlat", "min", "max"),
}
_DECIMALS: Final = frozenset({"rpct", "wpct", "min", "max"})
_OFF: Final[Mapping[str, str]] = {MODEL: "ctrl=auto", QOS: "enable=0"}


class CostFiles:
    """An empty text is what a disk has of itself: a model by the kernel's guess, and no division."""

    def __init__(self, io: IoController) -> None:
        self._io = io

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return canonical(s.knob, v) if isinstance(v, str) else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        """None where the kernel tells of it to nobody; of a disk that has no line, that it has nothing."""
        text = self._io.read("", s.knob)
        return None if text is None else canonical(s.knob, by_disk(text).get(at.path, ""))

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if not isinstance(v, str):
            return Refused(f"{s.knob} takes key=value pairs, not {render(s.knob, v)}")
        wanted = canonical(s.knob, v)
        if not wanted and not self.read(s, at):
            return Applied("")  # what is already off is not switched off: that would begin to count
        answer = self._io.write("", s.knob, f"{at.path} {wanted or _OFF[s.knob]}")
        if isinstance(answer, Refused) and "EOPNOTSUPP" in answer.reason:
            return Refused(f"{answer.reason}; disk {at.path} has no queue of requests: its disks below have")
        held = self.read(s, at) if answer is None else None
        return answer or (Gone() if held is None else Applied(held))

    def save(self, s: Setting, at: Handle, /) -> str | None:
        held = self.read(s, at)
        return held if isinstance(held, str) else None

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        return self.write(s, text, at)

    @cached_property
    def _support(self) -> Mapping[str, Support]:
        return {knob: self._judge(knob) for knob in (MODEL, QOS) if knob in KNOBS}

    def _judge(self, knob: str) -> Support:
        instead = "caps on others that follow what is used"
        if self._io.version != 2:
            return Support(False, needs="the io controller of cgroup v2", instead=instead)
        try:
            text = self._io.read("", knob)
        except Denied:
            text = None
        ok, needs = text is not None, "a kernel with CONFIG_BLK_CGROUP_IOCOST, and the root of the cgroup tree"
        return Support(ok, "cgroup2", needs="" if ok else needs, instead="" if ok else instead)


def canonical(knob: str, text: str) -> str:
    """The pairs in the kernel's order and spelling; nothing for a guess of its own, or for what is off."""
    said = pairs(text)
    if said.get("ctrl") == "auto" and knob == MODEL:
        return ""
    if said.get("enable", "0") == "0" and knob == QOS:
        return ""
    keys = (*_KEYS[knob], *sorted(said.keys() - _KEYS[knob]))
    return " ".join(f"{key}={_spelled(key, said[key])}" for key in keys if key in said)


def _spelled(key: str, value: str) -> str:
    if key not in _DECIMALS:
        return value
    try:
        return f"{float(value):.2f}"
    except ValueError:
        return value


def _conforms(b: CostFiles) -> Backend:
    return b
