"""How far everything is, and how long it will take: printed every few seconds, by what the last run took."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tools.testing.reading import Reading
from tools.testing.suites import Lane, Stage, suites_of

EVERY_S = 15.0


def remembered() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "j10ce-qos" / "durations.json"


class Progress:
    """`usual_s` of a suite holds until its first whole run on this machine."""

    def __init__(self, stages: Sequence[Stage], file: Path) -> None:
        self._stages, self._file = stages, file
        self._usual = {suite.name: float(suite.usual_s) for suite in suites_of(stages)} | durations(file)
        self._readings: dict[str, Reading] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()
        self._next = 0.0

    def begin(self, name: str) -> Reading:
        with self._lock:
            self._readings[name] = Reading()
            self._next = 0.0
        return self._readings[name]

    def end(self, name: str, took_s: float, *, whole: bool) -> None:
        with self._lock:
            self._ended.add(name)
            if whole:
                self._usual[name] = took_s
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._file.write_text(json.dumps(durations(self._file) | {name: round(took_s)}, indent=1))

    def tell(self) -> None:
        """One line, if the last one is a while ago."""
        with self._lock:
            if (now := time.monotonic()) >= self._next:
                self._next = now + EVERY_S
                print(self.line(), flush=True)

    def line(self) -> str:
        at = next((n for n, stage in enumerate(self._stages) if not self._done(stage)), len(self._stages) - 1)
        running = [self._running(suite.name) for lane in self._stages[at] for suite in lane]
        minutes = round(sum(map(self._left_s, self._stages)) / 60)
        left = f"about {minutes} min left" if minutes else "less than a minute left"
        return f"stage {at + 1} of {len(self._stages)}  {' · '.join(filter(None, running))}  {left}"

    def _done(self, stage: Stage) -> bool:
        return all(suite.name in self._ended for suite in suites_of([stage]))

    def _running(self, name: str) -> str:
        if name in self._ended or (reading := self._readings.get(name)) is None:
            return ""
        return f"{name} {reading.percent} %" + (f" ({reading.failures} failed)" if reading.failures else "")

    def _left_s(self, stage: Stage) -> float:
        return max(map(self._lane_left_s, stage))

    def _lane_left_s(self, lane: Lane) -> float:
        names = [suite.name for suite in lane if suite.name not in self._ended]
        return sum(self._usual[name] * (1 - self._readings.get(name, Reading()).percent / 100) for name in names)


def durations(file: Path) -> dict[str, float]:
    """What the last run of each suite took; a file that cannot be read is forgotten, it is only an estimate."""
    try:
        read = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return {name: float(took) for name, took in read.items()} if isinstance(read, dict) else {}
