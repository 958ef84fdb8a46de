"""Kernel parameters below /proc/sys and /sys/kernel/mm, for the few knobs of the table that are the machine's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from j10ce.kernel import file
from j10ce.model.knob import KNOBS, OF_VENDORS, Setting, Support, Value, render
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

PROC_SYS: Final = Path("/proc/sys")
OF_HOST: Final = Path("/host/proc/sys")  # parts of it, where a pod has them writable: its own is not
SYS_KERNEL: Final = Path("/sys/kernel")
OF_MEMORY: Final = "mm."  # knobs that begin so are there
VIA: Final = "sysctl"


class Sysctls:
    """A name with dots is a path with slashes. Nothing but the knobs of the table is ever read or written."""

    def __init__(self, root: Path = PROC_SYS, of_host: Path = OF_HOST, memory: Path = SYS_KERNEL) -> None:
        self._root, self._of_host, self._memory = root, of_host, memory
        self._support = {name: self._judge(name) for name, k in KNOBS.items() if k.on == "node" and not k.several}

    def knobs(self) -> Mapping[str, Support]:
        return self._support

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return float(round(v)) if isinstance(v, float | int) else v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        text = self.save(s, at)
        return None if text is None else float(text)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if not isinstance(v, float | int):
            return Refused(f"{s.knob} takes a number, not {render(s.knob, v)}")
        return self.restore(s, str(round(v)), at)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        return file.read(str(self._path(s.knob)))

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        refused = file.write(str(self._path(s.knob)), text)
        held = self.read(s, at) if refused is None else None
        return refused or (Gone() if held is None else Applied(held))

    def _path(self, knob: str) -> Path:
        name = knob.replace(".", "/")
        if knob.startswith(OF_MEMORY):
            return self._memory / name
        return self._of_host / name if (self._of_host / name).exists() else self._root / name

    def _judge(self, knob: str) -> Support:
        path = self._path(knob)
        if not path.exists():
            return Support(False, VIA, needs=OF_VENDORS if KNOBS[knob].rare else f"a kernel with {knob}")
        if not os.access(path, os.W_OK):
            return Support(False, VIA, needs=f"{path} to be writable: root, and mounted read-write")
        return Support(True, VIA)
