"""What the fleet makes of one policy, in the words of its status."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from j10ce.model.kinds import Condition, MinimalReservationPolicy, UnitCount, Witness
from j10ce.model.resource import Resources, spell
from j10ce.model.text.words import counted
from j10ce.policy.document.document import LIMITED
from j10ce.scheduler.ledger.lending import Reclaim
from j10ce.scheduler.ledger.pledge import PledgeRefusal, Standing


class Decision(NamedTuple):
    """The part of a policy's status that no single agent can know."""

    conditions: tuple[Condition, ...]  # Admitted comes first; without times
    units: UnitCount = UnitCount()
    witness: tuple[Witness, ...] = ()  # units by node, used ones included; empty unless admitted
    generation: int = 0  # the admitted one: status.admittedGeneration; 0 when there is none
    degraded: bool = False  # admitted, and not every unit has a place, or one that was lent is not back in time

    @property
    def admitted(self) -> Condition:
        return self.conditions[0]


class Admitted(NamedTuple):
    """An admitted policy, as it stands."""

    generation: int
    standing: Standing
    shortage: str = ""  # what the units without a place lack
    lost: tuple[str, ...] = ()  # nodes that it could use, were they there
    lends: bool = False
    lent: int = 0
    reclaims: Sequence[Reclaim] = ()


def expired(policy: MinimalReservationPolicy) -> Decision:
    why = f"its ttl of {policy.spec.ttl} is over; its capacity is free"
    return Decision((_condition(policy, "Admitted", "False", "Expired", why),), _wanted(policy))


def unheld(policy: MinimalReservationPolicy) -> Decision:
    """A policy without units asks nothing of the fleet."""
    return _granted(policy.metadata.generation, policy.spec.units)


@lru_cache(1024)
def _granted(generation: int, units: int) -> Decision:
    """Thousands of policies share a few of these."""
    why = "it holds no units; each matching workload has its floor while its node has room"
    granted = Condition(type="Admitted", status="True", reason="Granted", message=why, observed_generation=generation)
    return Decision((granted,), UnitCount(wanted=units), generation=generation)


def refused(policy: MinimalReservationPolicy, refusal: PledgeRefusal) -> Decision:
    return Decision((_refusal(policy, refusal, 0),), _wanted(policy))


def held(policy: MinimalReservationPolicy, refusal: PledgeRefusal | None, h: Admitted, now: float) -> Decision:
    """`refusal` is that of a later generation than the one in force; `now` by the clock of its deadlines."""
    s = h.standing
    used, placed = sum(s.used.values()), sum(s.used.values()) + sum(s.unused.values())
    witness = [Witness(node=n, units=s.used.get(n, 0) + s.unused.get(n, 0)) for n in sorted({**s.used, **s.unused})]
    where = f"{counted(placed, 'unit')} on {counted(len(witness), 'node')}, {used} in use"
    admitted = _condition(policy, "Admitted", "True", "Granted", where)
    if refusal is not None:
        admitted = _refusal(policy, refusal, h.generation)
    overdue = any(r.deadline < now for r in h.reclaims)
    return Decision(
        (admitted, _degraded(policy, h), *([_reclaimed(policy, h, now)] if h.lends else [])),
        UnitCount(wanted=policy.spec.units, placed=placed, used=used, lent=h.lent),
        tuple(witness),
        h.generation,
        s.missing > 0 or overdue,
    )


def partly_held(policy: MinimalReservationPolicy, decision: Decision, missing: Resources) -> Decision:
    """The same, and it says which part of each unit nobody holds."""
    why = f"{missing} of each unit is not held: units hold cpu and memory alone"
    return decision._replace(
        conditions=(*decision.conditions, _condition(policy, "Held", "False", "CpuAndMemoryAlone", why))
    )


def limited(policy: MinimalReservationPolicy, decision: Decision, full: str) -> Decision:
    """The same, in a namespace that reserves as much as it may: agents add no floors of it beyond units."""
    where = f"namespace {policy.metadata.namespace} reserves {full} that it may"
    why = f"{where}; workloads keep the floors and units that they have, and no further one gets a floor"
    condition = _condition(policy, LIMITED, "True", "NamespaceLimit", why)
    return decision._replace(conditions=(*decision.conditions, condition))


def _refusal(policy: MinimalReservationPolicy, refusal: PledgeRefusal, holds: int) -> Condition:
    stays = f"; generation {holds} stays in force" if holds else ""
    return _condition(policy, "Admitted", "False", refusal.reason, f"{refusal}{stays}")


def _degraded(policy: MinimalReservationPolicy, h: Admitted) -> Condition:
    if not h.standing.missing:
        return _condition(policy, "Degraded", "False", "Whole", "every unit has its place")
    lost = f"; lost: {', '.join(h.lost)}" if h.lost else ""
    why = f"{counted(h.standing.missing, 'unit')} without a place: {h.shortage}{lost}"
    return _condition(policy, "Degraded", "True", "NodeLost" if h.lost else "NoRoom", why)


def _reclaimed(policy: MinimalReservationPolicy, h: Admitted, now: float) -> Condition:
    if not h.reclaims:
        return _condition(policy, "Reclaimed", "True", "Returned", f"{h.lent} units are lent, none is called back")
    first = h.reclaims[0]
    left_s = first.deadline - now
    reason = "Reclaiming" if left_s >= 0 else "Overdue"
    when = f"{left_s:.0f} s are left" if left_s >= 0 else f"{-left_s:.0f} s too late"
    has = spell("memory", first.excess)
    why = f"best effort on {first.node} has memory {has} more than it may; {when}"
    return _condition(policy, "Reclaimed", "False", reason, why)


def _wanted(policy: MinimalReservationPolicy) -> UnitCount:
    return UnitCount(wanted=policy.spec.units)


def _condition(
    policy: MinimalReservationPolicy, kind: str, status: Literal["True", "False"], reason: str, why: str
) -> Condition:
    generation = policy.metadata.generation
    return Condition(type=kind, status=status, reason=reason, message=why, observed_generation=generation)
