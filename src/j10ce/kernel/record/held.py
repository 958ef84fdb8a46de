"""The last read-back of every tracked setting, and whose turn it is to be read again."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Mapping
from typing import Final

from j10ce.errors import QosError
from j10ce.kernel.cgroup.spelling import number
from j10ce.kernel.routes import Routes
from j10ce.model.knob import Setting, TargetId, Value

SWEEP_S: Final = 30.0
ROUNDED_US: Final = 100.0  # of 100 ms: more than a microsecond in the shortest period, less than a thousandth of a CPU
_FIRST_TICK_S: Final = 1.0


class Held:
    """`values` is what a setting means, `_raw` what its file says; they differ where "as the parent" is spelled out."""

    def __init__(self, routes: Routes, ours: Container[Setting]) -> None:
        self._routes = routes
        self._ours = ours
        self.values: dict[Setting, Value] = {}
        self._raw: dict[Setting, Value] = {}
        self._made: dict[Setting, tuple[Value, Value]] = {}  # what was written last, and what was made of it
        self._by_target: dict[TargetId, dict[Setting, None]] = {}
        self._copy: Mapping[Setting, Value] | None = None
        self._queue: list[Setting] = []
        self._swept: float | None = None

    def snapshot(self) -> Mapping[Setting, Value]:
        if self._copy is None:
            self._copy = dict(self.values)
        return self._copy

    def read(self, target: TargetId) -> None:
        """All settings of a target afresh."""
        self.drop(target)
        for setting, value in self._routes.read_all(target, self._ours):
            self.take(setting, value)

    def take(self, setting: Setting, value: Value, raw: Value | None = None) -> None:
        if setting not in self.values:
            self._by_target.setdefault(setting.target, {})[setting] = None
        self.values[setting] = value
        self._raw[setting] = value if raw is None else raw
        self._copy = None

    def drop(self, target: TargetId) -> None:
        for setting in self.of([target]):
            self.lose(setting)

    def learn(self, setting: Setting, written: Value, made: Value) -> None:
        """systemd spells a quota in the unit's own period, so that it may come out a little different."""
        if setting.knob == "cpu.max" and abs(number(made) - number(written)) < ROUNDED_US:
            self._made[setting] = (written, made)

    def foreseen(self, setting: Setting, value: Value) -> Value:
        """What will be made of a value: what was made of it last."""
        written, made = self._made.get(setting, (value, value))
        return made if value == written else value

    def lose(self, setting: Setting) -> None:
        self._made.pop(setting, None)
        if self.values.pop(setting, None) is not None:
            self._by_target[setting.target].pop(setting)
            if not self._by_target[setting.target]:
                del self._by_target[setting.target]
        self._raw.pop(setting, None)
        self._copy = None

    def of(self, targets: Collection[TargetId]) -> list[Setting]:
        return [s for target in targets for s in self._by_target.get(target, ())]

    def due(self, now: float, budget: int) -> list[Setting]:
        """The next settings in turn: as many as bring all of them round in 30 s."""
        elapsed = _FIRST_TICK_S if self._swept is None else now - self._swept
        count = min(budget, len(self.values), math.ceil(len(self.values) * elapsed / SWEEP_S))
        self._swept = now
        if len(self._queue) < count:
            waiting = set(self._queue)
            self._queue += [s for s in self.values if s not in waiting]
        turn, self._queue = self._queue[:count], self._queue[count:]
        return [s for s in turn if s in self.values]

    def check(self, setting: Setting) -> Value | None:
        """Read again; the value found where it is not what we knew, else None. A vanished setting is dropped."""
        try:
            present = self._routes.read(setting)
        except QosError:  # unreadable for the moment: what was known stands
            return None
        if present is None:
            self.lose(setting)
            return None
        if present == self._raw[setting]:
            return None
        self.take(setting, present)
        return present

    def reread(self, setting: Setting) -> Value | None:
        """Our own write moved it: take what is there without suspecting anyone. "As the parent" stays that."""
        present = self._routes.look(setting)
        if present is not None and setting in self.values:
            follows = self.values[setting] == frozenset()
            self.take(setting, frozenset() if follows else present, present)
        return present
