"""`cpu-identity`: who preempts whom, on kernels of vendors that know group identities.

Where cpu.idle and weights say it already, they do all of it; the identity adds that a wake-up preempts at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from j10ce.control.besteffort import cover, idlers
from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

KNOB: Final = "cpu.bvt_warp_ns"
FIRST: Final = 2.0
LAST: Final = -1.0


class CpuIdentity(Unconfigured):
    """Idle work is the last, and what its profile calls realtime the first; all others are left as they are."""

    name = "cpu-identity"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        if not snap.supports(KNOB):
            return
        for target in idlers(snap):
            yield self._want(target, LAST, "idle: everyone else preempts it")
        realtime = {t for t, e in snap.entitlements.items() if e.chosen and e.cpu.latency == "realtime"}
        for target in cover(snap, realtime):
            yield self._want(target, FIRST, "latency realtime: it preempts whoever is not")

    def _want(self, target: TargetId, value: float, reason: str) -> Proposal:
        return Proposal(Setting(target, KNOB), Bound.WANT, value, self.name, Rank.POLICY, reason)


_: Controller = CpuIdentity(CpuIdentity.Config())
