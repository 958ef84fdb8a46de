"""What is never touched, whatever a plan says: the last look before a write."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from j10ce.kernel.backend import Place
from j10ce.kernel.process import process
from j10ce.kernel.routes import controller_of
from j10ce.model.knob import KNOBS, Role, TargetId, Value, render
from j10ce.model.plan import ValueChange

_CAPS_ON_MEMORY: Final = ("memory.max", "memory.high")
_RESERVE_SHARE: Final = 0.05
_RESERVE_BYTES: Final = 512 << 20


class Seen(NamedTuple):
    """What the guard needs to know about the target of a change."""

    owned: bool  # our top group or below it
    managed: bool  # a tracked workload, or an ancestor of one
    original: Value | None = None  # before our first write, or now
    usage: float | None = None
    minimum_elsewhere: float = 0.0  # the memory.min of the other top-level groups


class Guard(Struct, frozen=True):
    own: frozenset[str] = frozenset()  # paths of the cgroups that this process is in
    memory: float = float("inf")  # bytes of the machine
    allow_oom: Callable[[TargetId], bool] = lambda _: False

    @classmethod
    def of_this_process(cls, memory: float = float("inf")) -> Guard:
        here = process(os.getpid())
        return cls(own=frozenset(here.cgroups.values()) if here else frozenset(), memory=memory)

    def objection(self, change: ValueChange, at: Place, seen: Seen) -> str:
        """Why the write must not happen, or nothing."""
        path = at.at(controller_of(change.setting))
        if not path:
            return "the root's own limits are never touched"
        if path.split("/")[0] == "init.scope":
            return "init.scope is never touched"
        if not seen.owned and path in self.own:
            return f"{path} is the cgroup that this agent runs in"
        if not seen.owned and not seen.managed:
            return f"{path} is not managed: neither ours, nor a workload, nor above one"
        if not seen.owned and change.setting.target.startswith("group/"):
            return _foreign_ancestor(change, path, seen)
        return self._memory(change, path, seen)

    def _memory(self, change: ValueChange, path: str, seen: Seen) -> str:
        knob, new = change.setting.knob, change.new
        if isinstance(new, str | frozenset):
            return ""
        used = seen.usage if knob in _CAPS_ON_MEMORY else None
        if used is not None and new < used and not self.allow_oom(change.setting.target):
            return f"{knob} = {render(knob, new)} is below the {render(knob, used)} in use; it needs --allow-oom"
        if knob == "memory.min" and "/" not in path:
            room = self.memory - max(_RESERVE_SHARE * self.memory, _RESERVE_BYTES)
            if new + seen.minimum_elsewhere > room:
                total = render(knob, new + seen.minimum_elsewhere)
                return f"memory.min of all groups would be {total}; the machine can promise {render(knob, room)}"
        return ""


def _foreign_ancestor(change: ValueChange, path: str, seen: Seen) -> str:
    role = KNOBS[change.setting.knob].role if change.setting.knob in KNOBS else None
    if role not in (Role.GUARANTEE, Role.SHARE):
        return f"{path} is not ours; above a workload only guarantees are changed"
    if isinstance(change.new, float | int) and isinstance(seen.original, float | int) and change.new < seen.original:
        return f"{path} is not ours; its {change.setting.knob} is only raised, and it was {seen.original:g}"
    return ""
