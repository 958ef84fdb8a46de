"""What is never touched, whatever a plan says: the last look before a write."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from j10ce.kernel.process import process
from j10ce.kernel.routes import controller_of
from j10ce.model.knob import CGROUP_KINDS, KNOBS, KnobRole, Setting, Value, has, kind_of, render
from j10ce.model.plan import ValueChange
from j10ce.model.workload import Handle

_CAPS_ON_MEMORY: Final = ("memory.max", "memory.high")
_RESERVE_SHARE: Final = 0.05
_RESERVE_BYTES: Final = 512 << 20
_NO_END: Final = float(1 << 62)  # a machine that nobody has measured


class GuardedTarget(NamedTuple):
    """What the guard needs to know about the target of a change."""

    owned: bool  # our top group or below it
    managed: bool  # a tracked workload, or an ancestor of one
    original: Value | None = None  # before our first write, or now
    usage: float | None = None
    present: Value | None = None
    minimum_elsewhere: float = 0.0  # the memory.min of the other top-level groups, whoever made them


class Guard(Struct, frozen=True):
    own: frozenset[str] = frozenset()  # paths of the cgroups that this process is in
    memory: Callable[[], float] = lambda: _NO_END  # bytes of the machine; some can be added while it runs

    @classmethod
    def of_this_process(cls, memory: Callable[[], float] = lambda: _NO_END) -> Guard:
        here = process(os.getpid())
        return cls(own=frozenset(here.cgroups.values()) if here else frozenset(), memory=memory)

    def objection(self, change: ValueChange, at: Handle, seen: GuardedTarget) -> str:
        """Why the write must not happen, or nothing."""
        if kind_of(change.setting.target) not in CGROUP_KINDS:
            return _beside_cgroups(change)
        path = at.path_of(controller_of(change.setting))
        if not path:
            return "the root's own limits are never touched"
        if path.split("/")[0] == "init.scope":
            return "init.scope is never touched"
        if change.setting.knob == "cgroup.freeze" and change.new and (why := self._frozen_too(change.setting, path)):
            return why
        if not seen.owned and path in self.own:
            return f"{path} is the cgroup that this agent runs in"
        if not seen.owned and not seen.managed:
            return f"{path} is not managed: neither ours, nor a workload, nor above one"
        if not seen.owned and change.setting.target.startswith("group/"):
            return _foreign_ancestor(change, path, seen) or self._promised(change, at, seen)
        return _below_usage(change, seen) or self._promised(change, at, seen)

    def _frozen_too(self, setting: Setting, path: str) -> str:
        """A workload can be frozen, and nothing that holds whoever is to thaw it again."""
        if kind_of(setting.target) != "workload":
            return "only workloads are frozen"
        return f"{path} holds this agent" if any(f"{own}/".startswith(f"{path}/") for own in self.own) else ""

    def _promised(self, change: ValueChange, at: Handle, seen: GuardedTarget) -> str:
        """Whatever is claimed already, less may always be claimed."""
        knob, new, memory = change.setting.knob, change.new, self.memory()
        present = seen.present if isinstance(seen.present, float | int) else 0.0
        if not claims_of_the_machine(change.setting, at) or isinstance(new, str | frozenset) or new <= present:
            return ""
        room, total = memory - max(_RESERVE_SHARE * memory, _RESERVE_BYTES), new + seen.minimum_elsewhere
        if total <= room:
            return ""
        return f"memory.min of all groups would be {render(knob, total)}; the machine can promise {render(knob, room)}"


def _beside_cgroups(change: ValueChange) -> str:
    """There only the knobs of the table are written, within their range."""
    s, k, new = change.setting, KNOBS.get(change.setting.knob), change.new
    if k is None or not has(s.target, s.knob):
        return f"{s.target} has no {s.knob}"
    if isinstance(new, float | int) and not k.low <= new <= k.high:
        return f"{s.knob} = {render(s.knob, new)} is outside {k.low:g} to {k.high:g}"
    return ""


def claims_of_the_machine(setting: Setting, at: Handle) -> bool:
    """Whether the setting is one of those whose sum must leave the machine some memory."""
    return setting.knob == "memory.min" and "/" not in at.path_of("memory")


def _below_usage(change: ValueChange, seen: GuardedTarget) -> str:
    knob, new, used = change.setting.knob, change.new, seen.usage
    if knob not in _CAPS_ON_MEMORY or isinstance(new, str | frozenset) or used is None or new >= used:
        return ""
    return f"{knob} = {render(knob, new)} is below the {render(knob, used)} in use, which would stall or kill"


def _foreign_ancestor(change: ValueChange, path: str, seen: GuardedTarget) -> str:
    role = KNOBS[change.setting.knob].role if change.setting.knob in KNOBS else None
    if role not in (KnobRole.GUARANTEE, KnobRole.SHARE):
        return f"{path} is not ours; above a workload only guarantees are changed"
    if isinstance(change.new, float | int) and isinstance(seen.original, float | int) and change.new < seen.original:
        return f"{path} is not ours; its {change.setting.knob} is only raised, and it was {seen.original:g}"
    return ""
