"""`own`: the agent protects itself, so that it can protect others."""

from __future__ import annotations

from collections.abc import Iterator

from j10ce.control.controller import Controller
from j10ce.model import knob
from j10ce.model.kinds import Strict
from j10ce.model.knob import Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Snapshot


class Own:
    name = "own"
    steady = True

    class Config(Strict, frozen=True, kw_only=True):
        group: str = ""  # path of the agent's own cgroup; empty: it has none
        memory: Quantity = Quantity(64 << 20)
        weight: int = 1024

    def __init__(self, config: Config) -> None:
        self.config = config

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        target = knob.group(self.config.group)
        if not self.config.group or snap.groups.get(target) is None:
            return
        values = {"memory.min": float(self.config.memory.bytes()), "cpu.weight": float(self.config.weight)}
        for name, value in values.items():
            if snap.supports(name):
                reason = f"the agent keeps {knob.render(name, value)} for itself"
                yield Proposal(Setting(target, name), Bound.WANT, value, self.name, Rank.POLICY, reason)


_: Controller = Own(Own.Config())
