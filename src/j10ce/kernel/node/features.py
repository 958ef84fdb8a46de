"""Features of the kernel's scheduler: words of one file of debugfs, NAME where one is on, NO_NAME where it is off."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from j10ce.kernel import file
from j10ce.model.knob import Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

KNOB: Final = "sched.features"
OFF: Final = "NO_"
VIA: Final = "debugfs"
DEBUGFS: Final = Path("/sys/kernel/debug")
OF_HOST: Final = Path("/host/sys/kernel/debug")  # a pod's own /sys has none
NAMES: Final = ("sched/features", "sched_features")  # since Linux 5.13, and before


class SchedFeatures:
    """One instance for each feature. The kernel refuses those that it lacks, and so does this."""

    def __init__(self, *roots: Path) -> None:
        self._roots = roots or (OF_HOST, DEBUGFS)
        paths = [root / name for root in self._roots for name in NAMES]
        # Not Path.exists: that raises where we may not look, and debugfs is root's alone.
        self._path = next((path for path in paths if os.path.exists(path)), None)
        self._support = self._judge()

    def knobs(self) -> Mapping[str, Support]:
        return {KNOB: self._support}

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        return tuple(self._words())

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        word = self.save(s, at)
        return None if word is None else float(word == s.instance)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if v not in (0, 1):
            return Refused(f"{s.knob} takes 0 or 1, not {render(s.knob, v)}")
        return self.restore(s, s.instance if v else f"{OFF}{s.instance}", at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        return self._words().get(s.instance)

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        if s.instance not in self._words() or self._path is None:
            return Refused(f"this kernel's scheduler has no feature {s.instance!r}")
        refused = self._say(self._path, text)
        held = self.read(s, at) if refused is None else None
        return refused or (Gone() if held is None else Applied(held))

    def _say(self, path: Path, word: str) -> Refused | Gone | None:
        """The kernel takes one word and keeps the others."""
        return file.write(str(path), word)

    def _words(self) -> dict[str, str]:
        """By name, how it is spelled now."""
        text = file.read(str(self._path)) if self._path else None
        return {word.removeprefix(OFF): word for word in (text or "").split()}

    def _judge(self) -> Support:
        if self._path is None:
            present = (root for root in self._roots if os.path.exists(root))
            if closed := next((root for root in present if not os.access(root, os.X_OK)), None):
                return Support(False, VIA, needs=f"{closed} to be readable: root")
            needs = f"debugfs (mount -t debugfs debugfs {DEBUGFS}), and a kernel with CONFIG_SCHED_DEBUG or Linux 6.14"
            return Support(False, VIA, needs=needs)
        if not os.access(self._path, os.W_OK):
            return Support(False, VIA, needs=f"{self._path} to be writable: root, and no lockdown")
        return Support(True, VIA)
