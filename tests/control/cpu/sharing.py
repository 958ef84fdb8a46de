"""What the scheduler makes of weights: every leaf wants all the CPU, siblings share by weight, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.plan import Bound, Proposal
from j10ce.model.snapshot import Snapshot

IDLE = 3.0


def kernel_v1(shares: float) -> float:
    """cpu.shares takes whole numbers from 2 to 262144."""
    return float(min(262144, max(2, int(shares))))


def kernel_v2(shares: float) -> float:
    """cpu.weight takes 1 to 10000, and the scheduler multiplies it by 1024/100."""
    weight = min(10000, max(1, int(shares * 100 / 1024 + 0.5)))
    return float(int(weight * 1024 / 100 + 0.5))


def weights_after(
    snap: Snapshot, proposals: Iterable[Proposal], kernel: Callable[[float], float]
) -> dict[TargetId, float]:
    """The weight of every target once the proposals are in force."""
    present = {t: snap.settings.get(Setting(t, "cpu.weight"), 1024.0) for t in snap.groups.by_target}
    after = {t: float(v) for t, v in present.items() if isinstance(v, float)}
    idle = set()
    for p in proposals:
        if p.setting.knob == "cpu.weight" and isinstance(p.value, float):
            t = p.setting.target
            after[t] = kernel(p.value) if p.bound is Bound.WANT else max(after[t], kernel(p.value))
        if p.setting.knob == "cpu.idle" and p.value == 1.0:
            idle.add(p.setting.target)
    return {t: IDLE if t in idle else w for t, w in after.items()}


def millicores(snap: Snapshot, weights: Mapping[TargetId, float]) -> dict[TargetId, float]:
    """What each target gets when everyone, foreign siblings included, is runnable."""
    got = {ROOT: len(snap.node.cpus) * 1000.0}
    for parent in snap.groups.from_top():
        children = snap.groups.children.get(parent, ())
        total = sum(weights[c] for c in children) + sum(f.weight for f in snap.groups[parent].foreign)
        got |= {c: got[parent] * weights[c] / total for c in children}
    return got
