"""`cpu-idle`: best-effort work runs when no one else wants the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from j10ce.control.besteffort import idlers
from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.cpu.rivals import sheltered
from j10ce.control.cpu.weights import grid
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot


class CpuIdle(Unconfigured):
    """Where the kernel lacks cpu.idle, the smallest weight stands in. Never both: an idle group refuses a weight."""

    name = "cpu-idle"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        if snap.supports("cpu.idle"):
            knob, value, why = "cpu.idle", 1.0, ""
        elif snap.supports("cpu.weight"):
            knob, value = "cpu.weight", grid(snap.support).low
            why = f"this kernel lacks cpu.idle; {value:.0f} shares is the least it knows"
        else:
            return
        for target, inside in idlers(snap).items():
            who = "best-effort" if target in inside else f"best-effort, {len(inside)} inside"
            reason = f"{who}: {why or _idle_for(snap, target)}"
            yield Proposal(Setting(target, knob), Bound.WANT, value, self.name, Rank.POLICY, reason)


def _idle_for(snap: Snapshot, target: TargetId) -> str:
    if sheltered(snap, target):
        return "runs only when nobody else wants the CPU"
    return f"idle among its siblings in {snap.groups.parent(target)}"


_: Controller = CpuIdle(CpuIdle.Config())
