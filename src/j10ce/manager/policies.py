"""The Policy Manager: what the agents report becomes the status of each policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.nodes import stale_since
from j10ce.manager.view import View
from j10ce.model.kinds import (
    Condition,
    EffectiveFloor,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    ReservationReport,
    UnitCount,
)
from j10ce.policy.document import reference
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0  # expiry and silence happen without an event
SETTLE_S: Final = 0.1  # reports that come together are judged together
Phase = Literal["Pending", "Active", "Degraded", "Expired"]


class Told(NamedTuple):
    """What one node says about one policy."""

    node: str
    report: ReservationReport
    effective: tuple[EffectiveFloor, ...]


class Basis(NamedTuple):
    """All that a judgement rests on."""

    revision: str
    expired: bool
    told: tuple[Told, ...]


async def judge_policies(store: Store, view: View, wall: Callable[[], float]) -> None:
    """Keep the status of every MinimalReservationPolicy true, for ever."""
    await view.ready()
    seen: dict[str, Basis] = {}  # by uid
    while True:
        epoch, now = view.objects.epoch, wall()
        policies, told = view.all(MinimalReservationPolicy), reports(view.all(NodeQoS), now)
        bases = {p.metadata.uid: _basis(p, told, now) for p in policies}
        async with asyncio.TaskGroup() as group:
            for policy in policies:
                basis = bases[policy.metadata.uid]
                if seen.get(policy.metadata.uid) != basis:
                    group.create_task(_judge(store, policy, basis.told, now))
        seen = bases
        try:
            await asyncio.sleep(SETTLE_S)
            async with asyncio.timeout(LOOK_S):
                await view.objects.moved(epoch)
        except TimeoutError:
            continue


def _basis(policy: MinimalReservationPolicy, told: Mapping[str, tuple[Told, ...]], wall: float) -> Basis:
    return Basis(policy.metadata.resource_version, expired(policy, wall), told.get(reference(policy), ()))


def reports(nodes: Iterable[NodeQoS], wall: float) -> dict[str, tuple[Told, ...]]:
    """What the nodes that are not silent say, by policy."""
    found: dict[str, tuple[Told, ...]] = {}
    for node in nodes:
        if stale_since(node, wall) is not None:
            continue
        for report in node.status.node.reservations:
            effective = tuple(e for e in node.status.node.effective if e.source == report.source)
            found[report.source] = (*found.get(report.source, ()), Told(node.metadata.name, report, effective))
    return found


async def _judge(store: Store, policy: MinimalReservationPolicy, told: Sequence[Told], wall: float) -> None:
    status = judged(policy, told, wall)
    if status == policy.status:
        return
    try:
        expect = policy.metadata.resource_version
        await store.put(replace(policy, status=status), expect=expect, part="status")
    except (Conflict, NotFound):
        return  # it moved on, and its next event brings us back
    if status.phase != policy.status.phase:
        log.info("policy.judge", policy=reference(policy), phase=status.phase, was=policy.status.phase)


def judged(policy: MinimalReservationPolicy, told: Sequence[Told], wall: float) -> MinimalReservationPolicyStatus:
    """The status that a policy deserves; the one it has when nothing speaks for another."""
    generation, over = policy.metadata.generation, expired(policy, wall)
    obeying = [t for t in told if t.report.generation == generation and not over]
    if not told and not over and policy.status == MinimalReservationPolicyStatus():
        return policy.status
    floors = (floor for t in obeying for floor in t.effective)
    effective = tuple(sorted(floors, key=lambda f: (f.node, f.workload, f.resource)))
    admitted = _expiry(policy) if over else _admitted(generation, obeying, told)
    return replace(
        policy.status,
        phase="Expired" if over else _phase(obeying, admitted, effective),
        conditions=_stamped((admitted, _effectiveness(effective, generation)), policy, wall),
        observed_generation=generation if obeying or over else policy.status.observed_generation,
        units=UnitCount(
            wanted=policy.spec.units,
            placed=sum(t.report.units for t in obeying),
            used=sum(t.report.used for t in obeying),
        ),
        effective=effective,
    )


def expired(policy: MinimalReservationPolicy, wall: float) -> bool:
    ttl, created = policy.spec.ttl, policy.metadata.creation_timestamp
    return ttl is not UNSET and created is not UNSET and wall >= created.timestamp() + ttl.seconds


def _phase(obeying: Sequence[Told], admitted: Condition, effective: Iterable[EffectiveFloor]) -> Phase:
    if not obeying:
        return "Pending"
    broken = admitted.status == "False" or any(_falls_short(floor) for floor in effective)
    return "Degraded" if broken else "Active"


def _admitted(generation: int, obeying: Sequence[Told], told: Sequence[Told]) -> Condition:
    if not obeying:
        message = f"no node obeys generation {generation} yet" + (f"; {len(told)} obey an earlier one" if told else "")
        return _condition("Admitted", "Unknown", "NotObeyed", message, generation)
    if refused := [f"{t.node}: {t.report.refused}" for t in obeying if t.report.refused]:
        return _condition("Admitted", "False", "NoRoom", "; ".join(refused), generation)
    workloads = sum(t.report.workloads for t in obeying)
    message = f"{workloads} workloads on {len(obeying)} nodes have their floor"
    return _condition("Admitted", "True", "Granted", message, generation)


def _expiry(policy: MinimalReservationPolicy) -> Condition:
    message = f"its ttl of {policy.spec.ttl} is over; its capacity is free"
    return _condition("Admitted", "False", "Expired", message, policy.metadata.generation)


def _effectiveness(effective: Iterable[EffectiveFloor], generation: int) -> Condition:
    short = [f for f in effective if _falls_short(f)]
    if not short:
        return _condition("Effective", "True", "Upheld", "every floor reported holds", generation)
    first = short[0]
    message = (
        f"{len(short)} floors do not hold; {first.workload} on {first.node} has {first.effective} of "
        f"{first.promised} {first.resource}: {first.reason}"
    )
    return _condition("Effective", "False", "FallsShort", message, generation)


def _falls_short(floor: EffectiveFloor) -> bool:
    return floor.effective.amount < floor.promised.amount


def _condition(
    type_: str, status: Literal["True", "False", "Unknown"], reason: str, why: str, generation: int
) -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=why, observed_generation=generation)


def _stamped(conditions: Iterable[Condition], policy: MinimalReservationPolicy, wall: float) -> tuple[Condition, ...]:
    """A condition keeps the time at which its status last turned."""
    before = {condition.type: condition for condition in policy.status.conditions}
    now = datetime.fromtimestamp(int(wall), UTC)
    return tuple(
        replace(
            c,
            last_transition_time=old.last_transition_time
            if (old := before.get(c.type)) and old.status == c.status
            else now,
        )
        for c in conditions
    )
