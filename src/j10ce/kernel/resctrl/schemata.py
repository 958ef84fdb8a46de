"""Ways and bandwidth of a group, by cache: lines of its `schemata`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from j10ce.host.resctrl import BANDWIDTH, CACHES, SCHEMATA, mask, of_mask, schemata
from j10ce.kernel.resctrl.files import VIA, ResctrlFiles
from j10ce.model.knob import Setting, Support, Value, render
from j10ce.model.machine.cache import CacheControl
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

WAYS: Final = "resctrl.l3"
RATE: Final = "resctrl.mb"
_LINES: Final[Mapping[str, tuple[str, ...]]] = {WAYS: CACHES, RATE: (BANDWIDTH,)}


class Schemata:
    """Of what the CPU offers: some divide the cache alone, some bandwidth alone."""

    def __init__(self, files: ResctrlFiles, control: CacheControl) -> None:
        self._files = files
        self._bandwidth = control.bandwidth
        mounted = files.support()
        cache, rate = "a CPU that divides its last-level cache (CAT)", "a CPU that limits memory bandwidth (MBA)"
        offered = {WAYS: (control.ways, cache), RATE: (control.bandwidth, rate)}
        self._support = {
            knob: mounted if has or not mounted.ok else Support(False, VIA, needs=needs)
            for knob, (has, needs) in offered.items()
        }

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        return tuple(self._line(knob, at)[1])

    def quantise(self, s: Setting, v: Value, /) -> Value:
        """Bandwidth is rounded up to the step of the CPU, as the kernel does."""
        b = self._bandwidth
        if s.knob != RATE or b is None or isinstance(v, str | frozenset) or not math.isfinite(v):
            return v
        return float(min(b.most, math.ceil(v / b.step) * b.step))

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        text = self.save(s, at)
        if text is None:
            return None
        return of_mask(text) if s.knob == WAYS else float(text)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if isinstance(v, frozenset) and s.knob == WAYS:
            return self.restore(s, mask(v), at)
        if isinstance(v, float | int) and s.knob == RATE and math.isfinite(v):
            return self.restore(s, f"{self.quantise(s, v):.0f}", at)
        return Refused(f"{s.knob} does not take {render(s.knob, v)}")

    def save(self, s: Setting, at: Handle, /) -> str | None:
        return self._line(s.knob, at)[1].get(s.instance)

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        names, caches = self._line(s.knob, at)
        if self._files.identity(at.path) is None:
            return Gone()
        if s.instance not in caches:
            return Refused(f"{s.knob} has no instance {s.instance!r} here; it has {', '.join(caches) or 'none'}")
        for name in names:
            if answer := self._files.write(f"{at.path}/{SCHEMATA}", f"{name}:{s.instance}={text}"):
                return answer
        held = self.read(s, at)
        return Gone() if held is None else Applied(held)

    def _line(self, knob: str, at: Handle) -> tuple[list[str], dict[str, str]]:
        """The resources that a knob is of (code and data apart where they are), and what the first holds by cache."""
        lines = dict(schemata(self._files.read(f"{at.path}/{SCHEMATA}") or ""))
        names = [name for name in _LINES[knob] if name in lines]
        return names, lines[names[0]] if names else {}
