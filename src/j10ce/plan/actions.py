"""Which deeds are done: the arbiter's word on reclaims, evictions and kills.

A deed cannot be taken back, so that it has to pass more than a value: its target is a workload that a policy chose, or
for a reclaim a group of ours; nobody of tier system; no hold is on it; it was not done a moment ago, also not by the
agent before this one; and evictions and kills of a node stay within so many a minute. A reclaim leaves what was
promised: the kernel heeds the memory.min of whoever is inside the one that is asked, and not its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import Tier
from j10ce.model.knob import Deed, Setting, TargetId
from j10ce.model.parts.strategy import EVICTIONS_PER_MINUTE
from j10ce.model.plan import Action, HeldSetting, Plan
from j10ce.model.snapshot import Snapshot

AGAIN_S: Final = {Deed.RECLAIM: 0.0, Deed.EVICT: 120.0, Deed.KILL: 30.0}  # before the same is done to one target again
ENDINGS: Final = frozenset((Deed.EVICT, Deed.KILL))
MINUTE_S: Final = 60.0
MEASURED_S: Final = 5.0  # what was in use within that is known better than by the tree, which is rebuilt now and then


class Admitted(NamedTuple):
    actions: tuple[Action, ...]
    notes: tuple[str, ...] = ()  # what was left out, and why
    pending: tuple[Action, ...] = ()  # evictions that were asked for a moment ago, and are still wished for


def with_actions(plan: Plan, wishes: Collection[Action], snap: Snapshot, holds: Collection[HeldSetting]) -> Plan:
    """The plan and the deeds that are admitted; the same object where nobody wishes for any."""
    if not wishes:
        return plan
    said = snap.strategy.eviction.per_minute
    admitted = admit(wishes, snap, holds, EVICTIONS_PER_MINUTE if said is UNSET else said)
    notes = (*plan.notes, *admitted.notes)
    return replace(plan, actions=admitted.actions, notes=notes, pending=admitted.pending)


def admit(
    wishes: Iterable[Action], snap: Snapshot, holds: Collection[HeldSetting], per_minute: int = EVICTIONS_PER_MINUTE
) -> Admitted:
    """In the order of the wishes, so that whoever ranks victims decides who goes first. Pure."""
    held = {h.setting for h in holds if h.value is None}
    room = per_minute - _lately(snap)
    admitted: list[Action] = []
    notes: list[str] = []
    pending: list[Action] = []
    for action in _strongest(wishes):
        ends, again = action.deed in ENDINGS and action.enforced, _again(action, snap)
        full = f"no more than {per_minute} evictions and kills a minute" if ends and room <= 0 else ""
        most = _beyond_floor(action, snap)
        kept = "all that it uses was promised to it" if most <= 0 else ""
        why = _objection(action, snap, held)
        if not why and again and ends and action.deed is Deed.EVICT:
            pending.append(action)
        elif why := why or again or full or kept:
            notes.append(f"{action.deed.value} of {action.target} left out: {why}")
        else:
            room -= ends
            admitted.append(action if action.amount <= most else action._replace(amount=most))
    return Admitted(tuple(admitted), tuple(notes), tuple(pending))


def _beyond_floor(action: Action, snap: Snapshot) -> float:
    """Bytes that may be reclaimed without touching what was promised; infinite for everything else."""
    entitled, group = snap.entitlements.get(action.target), snap.groups.get(action.target)
    if action.deed is not Deed.RECLAIM or entitled is None or not entitled.floor.memory or group is None:
        return math.inf
    measured = snap.readings.window(action.target, "memory.current", MEASURED_S).last()
    return (group.memory_current if measured is None else measured) - entitled.floor.memory


def _strongest(wishes: Iterable[Action]) -> Iterable[Action]:
    """One of each kind for each target."""
    chosen: dict[tuple[Deed, TargetId], Action] = {}
    for action in wishes:
        known = chosen.get(action.what)
        if known is None or _stronger(action, known):
            chosen[action.what] = action
    return chosen.values()


def _stronger(action: Action, known: Action) -> bool:
    """Of two for the same target: one that is enforced, then the larger, then by owner."""
    return (action.enforced, action.amount, known.owner) > (known.enforced, known.amount, action.owner)


def _lately(snap: Snapshot) -> int:
    """Endings within the last minute; a time in the future is from before the clock was set back."""
    return sum(1 for (deed, _), at in snap.done.items() if deed in ENDINGS and 0 <= snap.wall - at < MINUTE_S)


def _objection(action: Action, snap: Snapshot, held: Collection[Setting]) -> str:
    target, entitled, group = action.target, snap.entitlements.get(action.target), snap.groups.get(action.target)
    if entitled is None and not (action.deed is Deed.RECLAIM and group is not None and group.owned):
        return "no workload of that name is here"
    if entitled is not None and not entitled.chosen:
        return "no policy chose this workload, it is only classified"
    if entitled is not None and entitled.tier is Tier.SYSTEM:
        return "tier system is never reclaimed from, evicted or killed"
    if Setting(target, action.deed.value) in held:
        return "held by an operator"
    return ""


def _again(action: Action, snap: Snapshot) -> str:
    since = snap.wall - snap.done.get(action.what, -1e18)
    if 0 <= since < AGAIN_S[action.deed]:
        return f"done {since:.0f} s ago; not again within {AGAIN_S[action.deed]:.0f} s"
    return ""
