"""`memory-cap`: best-effort leaves what was promised to others.

    room = memory of the node − spare − Σ floors of the others − memory.min of those that are not ours
Where the kernel keeps floors (memory.min), this brakes best effort with memory.high before memory runs out: without it
best effort would fill the machine up to what cannot be reclaimed, and be killed. Mainline cgroup v1 has no memory.min;
there, what best-effort cannot take, a neighbour's floor need not be protected from: memory.max holds against
best-effort only, and other tiers can still push each other out.

Several cgroups may each have an equal part of the room, and one that uses more may grow by an equal part of what is
left. A cap never falls below what is in use, and use alone never raises it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from j10ce.control.besteffort import cover
from j10ce.control.controller import Controller
from j10ce.control.law import pages_down, pages_up
from j10ce.model.kinds import Strict, Tier
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.foreign_claims import claimed_by_others

STEPS: Final = 64  # caps follow the usage in this many steps of the node's memory, so that they rarely move
SPARED_BYTES: Final = 512 << 20  # left to the machine itself, but no more than an eighth of a small one


class MemoryCap:
    name = "memory-cap"

    class Config(Strict, frozen=True, kw_only=True):
        reserve: Annotated[float, Meta(ge=0, lt=1)] = 0.05  # the least share of the node's memory left to the system

    def __init__(self, config: Config) -> None:
        self.config = config
        self._epoch = -1
        self._targets: tuple[TargetId, ...] = ()
        self._promised = 0.0

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        knob = next((k for k in ("memory.high", "memory.max") if snap.supports(k)), "")
        if not self._targets or not self._promised or not knob:
            return
        promised = spell("memory", self._promised)
        reason = f"leaves the {promised} that are promised to others"
        if not snap.supports("memory.min"):
            reason = f"memory.min is missing here; {promised} are promised to others"
        for target, cap in self._caps(snap, knob).items():
            yield Proposal(Setting(target, knob), Bound.AT_MOST, cap, self.name, Rank.POLICY, reason)

    def _caps(self, snap: Snapshot, knob: str) -> dict[TargetId, float]:
        node = snap.node
        step = max(node.page, node.memory // STEPS)
        spare = max(node.memory * self.config.reserve, min(SPARED_BYTES, node.memory / 8))
        room = max(float(step), node.memory - spare - self._promised)  # best effort is slowed down, not frozen
        used = {t: snap.groups[t].memory_current for t in self._targets}
        left = room - math.fsum(pages_down(n, step) for n in used.values())
        caps = {}
        for target, n in used.items():
            share = room / len(used)
            if left > 0:
                share = max(share, pages_down(n, step) + left / len(used))
            present = snap.settings.get(Setting(target, knob), math.inf)
            most = float(present) if isinstance(present, float | int) else math.inf
            caps[target] = max(pages_up(share, node.page), min(most, pages_up(n, step)))
        return caps

    def _look(self, snap: Snapshot) -> None:
        """Who is capped, and for how much, changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        chosen = {t: e for t, e in snap.entitlements.items() if e.chosen}
        besteffort = {t for t, e in chosen.items() if e.tier is Tier.BESTEFFORT}
        self._targets = tuple(cover(snap, besteffort))
        floors = float(sum(e.floor.memory for t, e in chosen.items() if t not in besteffort))
        self._promised = floors + claimed_by_others(snap, {}) if floors else 0.0
        self._epoch = snap.epoch


_: Controller = MemoryCap(MemoryCap.Config())
