"""Whom an idle group yields to: its siblings. Above them the groups that it is in weigh against each other.

A pod that is idle inside `kubepods/besteffort` runs beside `kubepods/burstable` with all the weight of its class. That
is next to nothing, but for the minute after a kubelet starts, when both classes weigh the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from j10ce.model.knob import KNOBS, ROOT, Setting, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.cpu_share import weight

NOTICEABLE: Final = 0.5  # of the weight of someone protected: from here on it is felt (benchmarks/kubepods.py)


class Rival(NamedTuple):
    """A group with idle work inside, beside one with protected work inside."""

    ours: TargetId
    ours_shares: float
    theirs: TargetId
    theirs_shares: float

    def __str__(self) -> str:
        return f"{self.ours} weighs {self.ours_shares:.0f} beside {self.theirs} with {self.theirs_shares:.0f}"


def sheltered(snap: Snapshot, target: TargetId) -> bool:
    """Whether it is idle for everyone: it stands below the root, or something above it is idle, too."""
    above = [t for t in snap.groups.ancestors(target) if t != ROOT]
    return not above or any(snap.settings.get(Setting(t, "cpu.idle")) == 1.0 for t in above)


def protected(snap: Snapshot) -> frozenset[TargetId]:
    """The workloads that best effort is to yield to, and every group that one of them is in."""
    chosen = [t for t, e in snap.entitlements.items() if e.chosen and not (e.cpu.idle or e.cpu.suppressible)]
    return frozenset(chosen).union(*(snap.groups.ancestors(t) for t in chosen))


def rival(snap: Snapshot, target: TargetId, whom: Collection[TargetId]) -> Rival | None:
    """The heaviest claim, against one of `whom`, that idle work has by the groups that it is in; None: too light."""
    claims = (r for r in _rivals(snap, target, whom) if r.ours_shares >= NOTICEABLE * r.theirs_shares)
    return max(claims, key=lambda r: r.ours_shares / max(1.0, r.theirs_shares), default=None)


def unweighed(snap: Snapshot, group: TargetId, whom: Collection[TargetId]) -> bool:
    """Whether a group weighs the least that there is although one of `whom` inside it weighs more.

    So a kubelet leaves its classes when it starts; within a minute it gives each what its pods ask for.
    """
    least = KNOBS["cpu.weight"].low
    inside = (weight(snap, t) for t in snap.groups.children.get(group, ()) if t in whom)
    return weight(snap, group) <= least < max(inside, default=0.0)


def _rivals(snap: Snapshot, target: TargetId, whom: Collection[TargetId]) -> Iterator[Rival]:
    for ours in snap.groups.ancestors(target):
        above = snap.groups.parent(ours)
        if above is None or ours in whom:
            continue
        shares = weight(snap, ours)
        for theirs in snap.groups.children.get(above, ()):
            if theirs in whom:
                yield Rival(ours, shares, theirs, weight(snap, theirs))
