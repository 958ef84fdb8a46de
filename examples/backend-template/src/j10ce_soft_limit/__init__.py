"""`memory.high` on cgroup v1, by what comes nearest: above its soft limit a group is reclaimed from first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from j10ce.model.knob import Setting, Support, Value
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

PAGE = 4096
UNLIMITED = 9223372036854771712  # as the kernel spells it
KNOB, FILE = "memory.high", "memory.soft_limit_in_bytes"


class SoftLimit:
    def __init__(self, memory: Path = Path("/sys/fs/cgroup/memory")) -> None:
        self._memory = memory

    def knobs(self) -> Mapping[str, Support]:
        if (self._memory / FILE).exists():
            return {KNOB: Support(True, via="soft-limit", instead="reclaimed from first, not slowed down")}
        return {KNOB: Support(False, needs=f"cgroup v1 with {self._memory / FILE}")}

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return v if not isinstance(v, float | int) or v == math.inf else float(v // PAGE * PAGE)

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        text = self.save(s, at)
        return None if text is None else math.inf if int(text) >= UNLIMITED else float(text)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        amount = self.quantise(s, v)
        if not isinstance(amount, float | int):
            return Refused(f"{KNOB} {v!r} is no number of bytes")
        return self.restore(s, str(UNLIMITED if amount == math.inf else int(amount)), at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        try:
            return self._file(at).read_text().strip()
        except FileNotFoundError:
            return None

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        file = self._file(at)
        if not file.exists():
            return Gone()
        try:
            file.write_text(text)
        except OSError as e:
            return Refused(f"{file} {text}: {e.strerror}")
        return Applied(self.read(s, at) or 0.0)

    def _file(self, at: Handle) -> Path:
        return self._memory / at.path_of("memory") / FILE
