"""Slowing victims down: memory stays at what is in use, CPU time at half of it.

    memory.high ≤ memory in use as the victim is chosen, in whole pages
    cpu.max     ≤ max(LEAST, half of the CPU time in use as the victim is chosen)
A cap is set once and does not follow the usage up, so that it neither creeps nor flutters. Who was asked to leave has
CPU time to do so, and memory a little beyond its cap: without one it could take what the others are slowed down for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from j10ce.control.besteffort import has_capped_parts, resizing
from j10ce.control.eviction.needs import FRESH_S
from j10ce.control.law import pages_up
from j10ce.model.knob import PERIOD_US, Setting, TargetId
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot

LEAST_CPUS: Final = 0.1
PART: Final = 0.5
ROOM: Final = 16  # one part in so many of its cap, to end in


class Caps:
    """What the victims of one resource are capped to."""

    def __init__(self, resource: str) -> None:
        self.knob = "memory.high" if resource == "memory" else "cpu.max"
        self._resource = resource
        self._caps: dict[TargetId, float] = {}

    def on(
        self, snap: Snapshot, victims: Iterable[TargetId], going: Iterable[TargetId] = ()
    ) -> Iterator[tuple[Setting, float, str]]:
        """(setting, at most so much, why) for each; whoever is no victim any more is forgotten. `going` were asked to
        leave: a cap that one of them has stays, and no other comes."""
        memory = self._resource == "memory"
        measure = self._memory if memory else self._cpu
        able = [t for t in victims if memory or not _closed(snap, t)]
        fresh = {t: cap for t in able if (cap := self._caps.get(t, measure(snap, t))) is not None}
        ending = {t: self._caps[t] for t in going if memory and t in self._caps}
        self._caps = fresh | ending
        for target, cap in fresh.items():
            slowed = f"slowed down to {cap / PERIOD_US:.2f} CPUs"
            yield Setting(target, self.knob), cap, f"kept at {spell('memory', cap)}" if memory else slowed
        for target, cap in ending.items():
            most = pages_up(cap + cap / ROOM, snap.node.page)
            yield Setting(target, self.knob), most, f"kept at {spell('memory', most)} while it ends"

    def forget(self) -> None:
        """Nobody is slowed down any more."""
        self._caps = {}

    def _memory(self, snap: Snapshot, target: TargetId) -> float | None:
        used = snap.readings.window(target, "memory.current", FRESH_S).last()
        return None if used is None else pages_up(used, snap.node.page)

    def _cpu(self, snap: Snapshot, target: TargetId) -> float | None:
        used = snap.readings.window(target, "cpu.usage", FRESH_S).mean()
        return None if used is None else float(round(max(LEAST_CPUS, used * PART) * PERIOD_US))


def _closed(snap: Snapshot, target: TargetId) -> bool:
    """Its CPU time is not ours to cap now."""
    return resizing(snap, target) or has_capped_parts(snap, target)
