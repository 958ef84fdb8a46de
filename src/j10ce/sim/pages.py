"""Who holds how much memory: growth, protection, reclaim and the end of it, over a second.

Whoever wants more gets it while there is some. Then cold pages are taken: first from those above memory.low, then down
to memory.min. When that is not enough, the largest is killed, whoever it is. A reclaim that asks for more than is cold
gets hot pages, which are read again at the next step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.sim.cgroups import FakeCgroups, number, parent

BRAKED: Final = 0.02  # how much of its wish still comes to a workload above its memory.high


class Appetite(NamedTuple):
    """What a workload wants to hold, and how much of it is used all the time."""

    size: float
    hot: float


class Meal(NamedTuple):
    """What came of it in one step: the share of time spent waiting, and bytes that had to be read again."""

    stalled: float
    refaults: float


class Pages:
    def __init__(self, cgroups: FakeCgroups, total: float) -> None:
        self._cgroups = cgroups
        self._total = total
        self._hot: dict[str, float] = {}
        self._lost: dict[str, float] = {}  # hot pages that were taken since the last step
        self.killed: list[str] = []  # since the beginning

    @property
    def used(self) -> float:
        return math.fsum(c.memory_current for c in self._cgroups.by_path.values())

    def step(self, wants: Mapping[str, Appetite]) -> dict[str, Meal]:
        self._hot = {path: want.hot for path, want in wants.items()}
        lost, self._lost = self._lost, {}
        growth = {path: max(0.0, self._wish(path, want) - self._held(path)) for path, want in wants.items()}
        asked = math.fsum(growth.values())
        if (missing := asked - self.free) > 0:
            self._take_from_all(missing)
        got = min(1.0, max(0.0, self.free) / asked) if asked else 1.0
        for path, more in growth.items():
            self._cgroups.by_path[path].memory_current += more * got
        if got < 1.0:
            self._kill(wants)
        return {p: Meal(self._stalled(p, want, got, growth[p]), lost.get(p, 0.0)) for p, want in wants.items()}

    @property
    def free(self) -> float:
        return self._total - self.used

    def reclaim(self, path: str, amount: float) -> float:
        """Bytes taken back from one cgroup and all below it; the cold ones first."""
        inside = [p for p in self._hot if p == path or p.startswith(f"{path}/")]
        cold = self._take({p: self._cold(p, "") for p in inside}, amount)
        return cold + self._take({p: self._held(p) for p in inside}, amount - cold)

    def _wish(self, path: str, want: Appetite) -> float:
        """Within its limits; beyond memory.high it crawls."""
        held, most = self._held(path), self._least(path, "memory.max")
        high = self._least(path, "memory.high")
        size = min(want.size, most)
        return size if size <= high else max(min(held, size), high) + BRAKED * (size - max(held, high))

    def _stalled(self, path: str, want: Appetite, got: float, growth: float) -> float:
        braked = want.size > self._least(path, "memory.high") or want.size > self._least(path, "memory.max")
        return max(1.0 - got if growth else 0.0, 1.0 - BRAKED if braked and want.size > self._held(path) else 0.0)

    def _take_from_all(self, missing: float) -> None:
        for protection in ("memory.low", "memory.min"):
            missing -= self._take({p: self._cold(p, protection) for p in self._hot}, missing)

    def _take(self, available: Mapping[str, float], amount: float) -> float:
        """In proportion to what each can give; whatever was hot of it will be read again."""
        total = math.fsum(available.values())
        part = min(1.0, max(0.0, amount) / total) if total > 0 else 0.0
        for path, most in available.items():
            here = self._cgroups.by_path[path]
            here.memory_current -= most * part
            if (hot := min(self._hot[path], here.memory_current + most * part) - here.memory_current) > 0:
                self._lost[path] = self._lost.get(path, 0.0) + hot
        return total * part

    def _cold(self, path: str, protection: str) -> float:
        cold = max(0.0, self._held(path) - self._hot[path])
        return min(cold, self._above(path, protection)) if protection else cold

    def _above(self, path: str, protection: str) -> float:
        kept = number(self._cgroups.by_path[path].values, protection)
        kept = max(kept, number(self._cgroups.by_path[path].values, "memory.min"))
        return max(0.0, self._held(path) - kept)

    def _kill(self, paths: Iterable[str]) -> None:
        victim = max(paths, key=self._held)
        self._cgroups.by_path[victim].memory_current = 0.0
        self.killed.append(victim)

    def _held(self, path: str) -> float:
        return self._cgroups.by_path[path].memory_current

    def _least(self, path: str, knob: str) -> float:
        """Of its own cap and those above it."""
        least = math.inf
        while path:
            least = min(least, number(self._cgroups.by_path[path].values, knob))
            path = parent(path)
        return least
