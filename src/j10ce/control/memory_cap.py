"""`memory-cap`: where the kernel cannot protect memory, best-effort leaves what was promised to others.

Mainline cgroup v1 has no memory.min. What best-effort cannot take, a neighbour's floor need not be protected from:
    cap = memory of the node − system reserve − Σ floors of the others, never below what best-effort already uses
It holds against best-effort only; other tiers can still push each other out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from j10ce.control.besteffort import cover
from j10ce.control.controller import Controller
from j10ce.control.law import pages_up
from j10ce.model.kinds import Strict, Tier
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot

STEPS: Final = 64  # the cap follows the usage in this many steps of the node's memory, so that it rarely moves


class MemoryCap:
    name = "memory-cap"

    class Config(Strict, frozen=True, kw_only=True):
        reserve: Annotated[float, Meta(ge=0, lt=1)] = 0.05  # of the node's memory, for the system

    def __init__(self, config: Config) -> None:
        self.config = config
        self._epoch = -1
        self._targets: tuple[TargetId, ...] = ()
        self._promised = 0.0

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        knob = next((k for k in ("memory.high", "memory.max") if snap.supports(k)), "")
        if not self._targets or not self._promised or not knob or snap.supports("memory.min"):
            return
        room = max(0.0, snap.node.memory * (1 - self.config.reserve) - self._promised)
        step = max(snap.node.page, snap.node.memory // STEPS)
        for target in self._targets:
            used = snap.groups[target].memory_current
            cap = max(pages_up(room / len(self._targets), snap.node.page), pages_up(used, step))
            reason = f"memory.min is missing here; {spell('memory', self._promised)} are promised to others"
            yield Proposal(Setting(target, knob), Bound.AT_MOST, cap, self.name, Rank.POLICY, reason)

    def _look(self, snap: Snapshot) -> None:
        """Who is capped, and for how much, changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        chosen = {t: e for t, e in snap.entitlements.items() if e.chosen}
        besteffort = {t for t, e in chosen.items() if e.tier is Tier.BESTEFFORT}
        self._targets = tuple(cover(snap, besteffort))
        self._promised = float(sum(e.floor.memory for t, e in chosen.items() if t not in besteffort))
        self._epoch = snap.epoch


_: Controller = MemoryCap(MemoryCap.Config())
