"""`own`: the agent protects itself, so that it can protect others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from j10ce.control.controller import Controller
from j10ce.control.law import pages_up
from j10ce.model import knob
from j10ce.model.kinds import Strict
from j10ce.model.knob import Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.quantity import Bytes, Quantity
from j10ce.model.snapshot import Snapshot

STEP: Final = 1 << 20  # its floor is a multiple of this
SLACK: Final = 4 << 20  # and stays while no more than this above what is used, so that it rarely moves


class Own:
    """What is charged to the agent's cgroup is kept there, and no more: bytes that it does not use are others'.

    An agent that joined its cgroup after it had allocated has most of its memory charged to where it came from.
    """

    name = "own"

    class Config(Strict, frozen=True, kw_only=True):
        group: str = ""  # path of the agent's own cgroup; empty: it has none
        memory: Quantity = Quantity(64 << 20)  # the most that it keeps for itself
        weight: int = 1024

    def __init__(self, config: Config) -> None:
        self.config = config

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        target = knob.group(self.config.group)
        if not self.config.group or snap.groups.get(target) is None:
            return
        values = {"memory.min": float(self.claim(snap)), "cpu.weight": float(self.config.weight)}
        for name, value in values.items():
            if value and snap.supports(name):
                reason = f"the agent keeps {knob.render(name, value)} for itself"
                yield Proposal(Setting(target, name), Bound.WANT, value, self.name, Rank.POLICY, reason)

    def claim(self, snap: Snapshot) -> Bytes:
        """What the agent would keep: what it uses, in steps. The cgroup itself remembers the last one."""
        group = snap.groups.get(knob.group(self.config.group)) if self.config.group else None
        if group is None or not snap.supports("memory.min"):
            return Bytes(0)
        used = min(float(self.config.memory.bytes()), pages_up(group.memory_current, STEP))
        held = snap.settings.get(Setting(group.target, "memory.min"))
        steady = isinstance(held, float | int) and used <= held <= used + SLACK
        return Bytes(int(held if steady and isinstance(held, float | int) else used))


def own_claim(controllers: Iterable[Controller]) -> Callable[[Snapshot], Bytes]:
    """What the agent would keep for itself, for the book; nothing where `own` is not among the controllers."""
    return next((c.claim for c in controllers if isinstance(c, Own)), lambda _: Bytes(0))


_: Controller = Own(Own.Config())
