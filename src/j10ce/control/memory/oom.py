"""`oom-order`: who goes first when memory runs out, as profiles say it.

    oom_score_adj of every process = −oomPriority

The kernel takes the process for which  memory in use + oom_score_adj / 1000 · all memory  is the largest. 0 leaves
processes as their maker made them: Kubernetes has an order of its own, by class and request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

KNOB: Final = "oom.score_adj"


class OomOrder(Unconfigured):
    name = "oom-order"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        for e in snap.entitlements.values() if snap.supports(KNOB) else ():
            if e.chosen and e.memory.oom_priority:
                value, reason = float(-e.memory.oom_priority), f"oomPriority {e.memory.oom_priority}"
                reason += f", profile {e.profile}" if e.profile else ""
                yield Proposal(Setting(e.target, KNOB), Bound.WANT, value, self.name, Rank.POLICY, reason)


_: Controller = OomOrder(OomOrder.Config())
