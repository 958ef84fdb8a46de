"""`core-sched`: hyperthreads of one core run threads of one group only.

Protected tiers share a group, the others another: so best effort never runs beside a protected workload on one core. A
workload may have a group with others of its namespace, one of its own, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, group_name
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Workload

EXPELLERS: Final = frozenset((Tier.EXCLUSIVE, Tier.RESERVED, Tier.SENSITIVE))  # nobody else's threads beside them
SHARED: Final = "shared"
SUFFIX: Final = "-expeller"
ALONE: Final = "__"  # no group's name begins with one of them: who is alone shares with no group that has its name


class CoreSched(Unconfigured):
    name = "core-sched"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        if not snap.supports("sched.cookie"):
            return
        for target, e in snap.entitlements.items():
            if e.chosen and e.cpu.core_sched and (group := core_group(e, snap.workloads[target])):
                why = f"shares a core with group {group} alone, {_source(e)}"
                setting = Setting(target, "sched.cookie")
                yield Proposal(setting, Bound.WANT, group, self.name, Rank.POLICY, why)


def core_group(e: Entitlement, w: Workload) -> str:
    """Whose threads may run beside its own; empty: anybody's that has no group. Tier system has none."""
    wish = w.overrides.core
    if e.tier is Tier.SYSTEM or wish.policy == "none":
        return ""
    if wish.policy == "exclusive":
        return group_name(f"{_whose(w)}{ALONE}{w.name}")
    base = f"{_whose(w)}_{wish.group}" if wish.group else SHARED
    expels = e.tier in EXPELLERS if e.cpu.core_expeller is UNSET else e.cpu.core_expeller
    return group_name(base + (SUFFIX if expels else ""))


def _whose(w: Workload) -> str:
    """Its namespace, where that is more than the word of a user. No namespace has a dot."""
    return w.namespace if w.vouched else f"{w.namespace}.{w.uid}"


def _source(e: Entitlement) -> str:
    return f"cpu.coreSched of profile {e.profile}" if e.profile else "cpu.coreSched of the node's strategy"


_: Controller = CoreSched(CoreSched.Config())
