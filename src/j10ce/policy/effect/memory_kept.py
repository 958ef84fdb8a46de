"""How much memory the kernel keeps for a workload: on the day when everyone needs it, and now."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.memory_share import Protected, distribute, full_usage, present_usage
from j10ce.policy.effect.support import missing

KNOBS: Final = ("memory.min", "memory.low")
CAPS: Final = ("memory.max", "memory.high")
STRAY_SHARE: Final = 1 / 16  # of a floor may be charged above it before that is reported, and at least this much
STRAY_BYTES: Final = 1 << 20


class Kept(NamedTuple):
    """`reason` names who annuls what was promised; it is empty where that holds."""

    bytes: float  # when everyone uses all that is protected or promised to it
    now: tuple[float, float]  # by memory.min and by memory.low, at the present usage
    reason: str


class MemoryKept:
    def __init__(self, snap: Snapshot, counted_late: Collection[TargetId]) -> None:
        self.snap = snap
        self.counted_late = counted_late
        present, full = present_usage(snap), full_usage(snap)
        self.now = [distribute(snap, knob, present, full=False) for knob in KNOBS]
        self.needed = [distribute(snap, knob, full, full=True) for knob in KNOBS]
        self._limits: dict[TargetId, list[tuple[float, str]]] = {}  # of each group on somebody's way

    def of(self, path: Sequence[TargetId], promised: int) -> Kept:
        """`path`: from below the root down to the workload."""
        page, target = self.snap.node.page, path[-1]
        protected = page * max(p.effective[target] for p in self.needed)
        limits = [*self._caps(path, promised), *self._strays(path, promised), *self._unread(path, promised)]
        limits += self._caps_of_parts(target)
        limits += self._bare_inside(target, promised)
        least, why = min(limits, default=(math.inf, ""))
        kept = min(protected, least)
        holds = kept > promised - page
        reason = "" if holds else self._reason(path, promised, why if least < promised else "")
        bare = self._bare(target)
        most = max(0.0, self.snap.groups[target].memory_current - bare) if bare else math.inf
        now = [min(most, float(page * p.effective[target])) for p in self.now]
        return Kept(kept, (now[0], now[1]), reason)

    def _reason(self, path: Sequence[TargetId], promised: int, limit: str) -> str:
        if not self.snap.supports("memory.min"):
            return missing(self.snap, "memory.min")
        return limit or _first_lack(max(self.needed, key=lambda p: p.setting[path[-1]]), path, promised, self.snap)

    def _caps(self, path: Sequence[TargetId], promised: int) -> Iterator[tuple[float, str]]:
        """Limits on the way: below what is promised to one, or to all of those inside together."""
        page = self.snap.node.page
        for target in path:
            if not (limits := self._limits_of(target)):
                continue
            inside = page * max(p.claimed.get(target, 0) for p in self.needed)
            for cap, text in limits:
                yield cap, text
                if promised <= cap < inside:
                    yield cap * promised / inside, f"{text}, and {spell('memory', inside)} are protected inside"

    def _limits_of(self, target: TargetId) -> list[tuple[float, str]]:
        """Read once, however many are inside."""
        if (known := self._limits.get(target)) is None:
            caps = ((knob, _number(self.snap, target, knob)) for knob in CAPS)
            known = [(cap, f"{knob} of {target} is {spell('memory', cap)}") for knob, cap in caps if cap != math.inf]
            self._limits[target] = known
        return known

    def _caps_of_parts(self, target: TargetId) -> Iterator[tuple[float, str]]:
        """Whoever made its parts limits them, and together they cannot have more than that."""
        parts = [c for c in self.snap.groups.children.get(target, ()) if c.startswith("part/")]
        least = [min((_number(self.snap, p, knob), knob) for knob in CAPS) for p in parts]
        if parts and (together := math.fsum(cap for cap, _ in least)) < math.inf:
            yield together, f"{least[0][1]} of its containers is {spell('memory', together)}"

    def _strays(self, path: Sequence[TargetId], promised: int) -> Iterator[tuple[float, str]]:
        """Pages from before a group counted apart what is inside it: they stay charged to the group itself."""
        for target in path[:-1] if promised else ():
            stray = self._charged_itself(target) if target in self.counted_late else 0.0
            if stray > max(STRAY_BYTES, promised * STRAY_SHARE):
                size = spell("memory", stray)
                why = f"{size} are charged to {target} itself, from before memory was counted apart inside it"
                yield max(0.0, promised - stray), why

    def _charged_itself(self, target: TargetId) -> float:
        groups, group = self.snap.groups, self.snap.groups[target]
        below = math.fsum(groups[c].memory_current for c in groups.children.get(target, ()))
        return group.memory_current - below - math.fsum(f.memory_current for f in group.foreign)

    def _bare_inside(self, target: TargetId, promised: int) -> Iterator[tuple[float, str]]:
        if not promised:
            return
        bare, used = self._bare(target), self.snap.groups[target].memory_current
        if bare > max(STRAY_BYTES, promised * STRAY_SHARE):
            what = f"{spell('memory', bare)} are in cgroups inside {target}, beyond their own memory.min"
            yield max(0.0, promised - bare, used - bare), f"{what}; cgroup2 is mounted without memory_recursiveprot"

    def _bare(self, target: TargetId) -> float:
        """Bytes in cgroups inside a workload that nobody protects: what it has itself does not reach them."""
        if self.snap.node.recursive_protection or not self.snap.supports("memory.min"):
            return 0.0
        inside = self.snap.groups[target].foreign
        return math.fsum(max(0.0, f.memory_current - max(f.memory_min, f.memory_low)) for f in inside)

    def _unread(self, path: Sequence[TargetId], promised: int) -> Iterator[tuple[float, str]]:
        """Nobody knows what a cgroup protects whose setting cannot be read."""
        if not promised or not self.snap.supports("memory.min"):
            return
        for target in path:
            if self.snap.groups[target].exists and Setting(target, "memory.min") not in self.snap.settings:
                yield 0.0, f"memory.min of {target} cannot be read"


def _number(snap: Snapshot, target: TargetId, knob: str) -> float:
    value = snap.settings.get(Setting(target, knob))
    return float(value) if isinstance(value, float | int) else math.inf


def _first_lack(kind: Protected, path: Sequence[TargetId], need: int, snap: Snapshot) -> str:
    """The first group from the top that protects too little."""
    page, above = snap.node.page, ROOT
    for target in path:
        if kind.effective[target] * page < need:
            if kind.setting[target] * page < need or above == ROOT:
                return f"{kind.knob} of {target} is {spell('memory', kind.setting[target] * page)}"
            has, claimed = kind.effective[above] * page, kind.claimed[above] * page
            return f"{above} has {spell('memory', has)} to protect and {spell('memory', claimed)} are claimed inside"
        above = target
    return f"{kind.knob} protects less than a page"
