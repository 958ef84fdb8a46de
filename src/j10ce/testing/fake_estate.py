"""A kind of target beside cgroups in memory: groups with a value per cache, as resctrl has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

import msgspec

from j10ce.model.knob import KNOBS, Setting, Support, TargetId, Value, resctrl
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle


class FakeEstate:
    """Estate, builder and back end in one. `room`: how many groups the machine can have."""

    kind = "resctrl"

    def __init__(self, caches: Sequence[str] = ("0", "1"), room: int = 4) -> None:
        self.caches = tuple(caches)
        self.room = room
        self.groups: dict[str, dict[Setting, Value]] = {}
        self._identities: dict[str, int] = {}
        self._next = count(1)

    def targets(self) -> Collection[TargetId]:
        return [resctrl(name) for name in self.groups]

    def place(self, target: TargetId, /) -> Handle | None:
        return Handle(target.partition("/")[2])

    def identity(self, at: Handle, /) -> int | None:
        return self._identities.get(at.path)

    def make(self, target: TargetId, at: Handle, /) -> Applied | Refused | Gone:
        if at.path not in self.groups and len(self.groups) >= self.room:
            return Refused(f"no room for {at.path}: the machine has {self.room} groups")
        if at.path not in self.groups:
            self.groups[at.path], self._identities[at.path] = {}, next(self._next)
        return Applied(at.path)

    def remove(self, target: TargetId, /) -> Applied | Refused | Gone:
        name = target.partition("/")[2]
        self._identities.pop(name, None)
        return Gone() if self.groups.pop(name, None) is None else Applied(name)

    def knobs(self) -> Mapping[str, Support]:
        return {name: Support(True, via="resctrl") for name, k in KNOBS.items() if k.on == self.kind}

    def instances(self, knob: str, at: Handle, /) -> Sequence[str]:
        return self.caches if at.path in self.groups else ()

    def quantise(self, s: Setting, v: Value, /) -> Value:
        return v

    def read(self, s: Setting, at: Handle, /) -> Value | None:
        held = self.groups.get(at.path)
        return None if held is None or s.instance not in self.caches else held.get(s, KNOBS[s.knob].default)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if at.path not in self.groups:
            return Gone()
        if s.instance not in self.caches:
            return Refused(f"{s.knob} has no instance {s.instance!r}; it has {', '.join(self.caches)}")
        self.groups[at.path][s] = v
        return Applied(v)

    def save(self, s: Setting, at: Handle, /) -> str | None:
        value = self.read(s, at)
        spelled = sorted(value) if isinstance(value, frozenset) else value
        return None if value is None else msgspec.json.encode(spelled).decode()

    def restore(self, s: Setting, text: str, at: Handle, /) -> Applied | Refused | Gone:
        value = msgspec.json.decode(text)
        return self.write(s, frozenset(value) if isinstance(value, list) else value, at)
