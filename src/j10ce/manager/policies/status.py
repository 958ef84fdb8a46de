"""The status that a policy deserves: pure functions of what the fleet decided and what its nodes report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from j10ce.manager.policies.admission import Decision
from j10ce.manager.policies.readiness import readiness
from j10ce.manager.policies.reports import PolicyReport, RolloutStanding, falls_short
from j10ce.model.kinds import (
    Condition,
    EffectiveFloor,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeStrategy,
    Policy,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
)
from j10ce.model.parts.progress import FailingNode, NodeCount
from j10ce.model.text.words import counted
from j10ce.policy.document.rollout import advance, progressing, waiting
from j10ce.policy.lifetime import in_force, over

MOST_NAMED: Final = 10  # failing nodes that a status names
MOST_EFFECTIVE: Final = 200  # floors that a status lists: those that do not hold come first
NOT_REPORTED: Final = "no node has reported on it yet"
Phase = Literal["Pending", "Active", "Degraded", "Expired"]
S = TypeVar("S", bound=PolicyStatus)


class Basis(NamedTuple):
    """All that a judgement rests on, besides the policy itself."""

    standing: RolloutStanding
    reports: Sequence[PolicyReport] = ()
    revisions: Sequence[PolicyRevision] = ()  # of the policy
    watched_s: float = 0.0  # since all nodes obey it, as far as this leader saw it


def judged_alone(policy: QoSProfile | NodeStrategy, basis: Basis, wall: float) -> PolicyStatus:
    """Of what takes no room from the fleet: nobody has to admit it."""
    return _summed_up(policy, _judged(policy, policy.status, basis, (), wall), wall)


def judged(
    policy: MinimalReservationPolicy, basis: Basis, decision: Decision, wall: float
) -> MinimalReservationPolicyStatus:
    obeying = [t for t in basis.reports if t.report.generation == basis.standing.revision]
    effective = sorted((f for t in obeying for f in t.effective), key=_order)
    own = (*decision.conditions, _protection(policy, obeying), _effectiveness(policy, obeying, effective))
    admitted = decision.generation == policy.metadata.generation
    status = _judged(policy, policy.status, basis, own, wall, admitted=admitted)
    status = replace(
        status,
        phase=_phase(policy, decision, status, wall),
        units=decision.units,
        witness=decision.witness,
        admitted_generation=decision.generation,
        effective=tuple(effective[:MOST_EFFECTIVE]),
    )
    return _summed_up(policy, status, wall)


def stamped(conditions: Iterable[Condition], before: Iterable[Condition], wall: float) -> tuple[Condition, ...]:
    """A condition keeps the time at which its status last turned."""
    times = {(c.type, c.status): c.last_transition_time for c in before}
    now = datetime.fromtimestamp(int(wall), UTC)
    return tuple(replace(c, last_transition_time=times.get((c.type, c.status), now)) for c in conditions)


def _judged(
    policy: Policy, before: S, basis: Basis, own: Sequence[Condition], wall: float, *, admitted: bool = True
) -> S:
    """What the status of every kind of policy says. What the fleet has not admitted is not rolled out."""
    seen, revision, rollout = basis.standing.seen, basis.standing.revision, before.rollout
    held = in_force(policy, basis.revisions) or policy
    if revision == held.metadata.generation:  # also while an edit is refused: what is in force goes on
        rollout = advance(held, seen, basis.revisions, wall, basis.watched_s)
    if revision == policy.metadata.generation:
        progress = progressing(policy, rollout, seen)
    else:
        progress = waiting(policy, revision, admitted=admitted)
    return replace(
        before,
        observed_generation=policy.metadata.generation,
        conditions=stamped((*own, *((progress,) if progress else ())), before.conditions, wall),
        nodes=_count(basis.standing),
        rollout=rollout,
    )


def _summed_up(policy: Policy, status: S, wall: float) -> S:
    summary = stamped(readiness(policy, status), policy.status.conditions, wall)
    return replace(status, conditions=(*status.conditions, *summary))


def _count(standing: RolloutStanding) -> NodeCount:
    failing = standing.failing
    named = tuple(FailingNode(node=node, why=failing[node]) for node in sorted(failing)[:MOST_NAMED])
    return NodeCount(
        wanted=standing.wanted,
        applied=standing.seen.applied,
        failing=len(failing),
        silent=standing.silent,
        named=named,
    )


def _phase(policy: MinimalReservationPolicy, decision: Decision, status: PolicyStatus, wall: float) -> Phase:
    if over(policy, wall):
        return "Expired"
    if not decision.generation or not status.nodes.applied:
        return "Pending"
    short = any(c.status == "False" for c in status.conditions if c.type in ("Admitted", "Protected", "Effective"))
    return "Degraded" if short or decision.degraded else "Active"


def _protection(policy: MinimalReservationPolicy, obeying: Sequence[PolicyReport]) -> Condition:
    if refused := [f"{t.node}: {t.report.refused}" for t in obeying if t.report.refused]:
        more = f"; and {counted(len(refused) - MOST_NAMED, 'node')} more" if len(refused) > MOST_NAMED else ""
        return _condition(policy, "Protected", "False", "NoRoom", "; ".join(refused[:MOST_NAMED]) + more)
    if not obeying:
        return _condition(policy, "Protected", "Unknown", "NotReported", NOT_REPORTED)
    matching = sum(t.report.workloads for t in obeying)
    having = matching - sum(t.report.unprotected for t in obeying)
    some = counted(matching, "workload") if having == matching else f"{having} of {counted(matching, 'workload')}"
    message = f"room is booked for {some}; Effective says whether it is kept" if matching else "no workload matches yet"
    return _condition(policy, "Protected", "True", "Granted", message)


def _effectiveness(
    policy: MinimalReservationPolicy, obeying: Sequence[PolicyReport], effective: Sequence[EffectiveFloor]
) -> Condition:
    """Whether what is booked is also kept."""
    if not obeying:
        return _condition(policy, "Effective", "Unknown", "NotReported", NOT_REPORTED)
    short = [f for f in effective if falls_short(f)]
    if not short:
        message = "every floor that nodes report holds" if effective else "no floor is in use yet"
        return _condition(policy, "Effective", "True", "Upheld", message)
    first, do = short[0], "does" if len(short) == 1 else "do"
    message = (
        f"{counted(len(short), 'floor')} {do} not hold; {first.workload} on {first.node} has {first.effective} of "
        f"{first.promised} {first.resource}: {first.reason}"
    )
    return _condition(policy, "Effective", "False", "FallsShort", message)


def _order(floor: EffectiveFloor) -> tuple[bool, str, str, str]:
    return not falls_short(floor), floor.node, floor.workload, floor.resource


def _condition(
    policy: Policy, type_: str, status: Literal["True", "False", "Unknown"], reason: str, why: str
) -> Condition:
    generation = policy.metadata.generation
    return Condition(type=type_, status=status, reason=reason, message=why, observed_generation=generation)
