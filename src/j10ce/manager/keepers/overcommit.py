"""Keeps each node's reclaimable amounts: computed from its report, written when they move, none when it is silent."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.daemon.pace import unhurried
from j10ce.errors import Conflict, NotFound
from j10ce.manager.documents.silence import Word
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.overcommit_file import Strategies
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS, NodeQoSStatus
from j10ce.model.quantity import Quantity
from j10ce.model.resource import NOTHING, RESOURCES, Resources
from j10ce.policy.document.document import reference
from j10ce.policy.entitlement.ledger import guaranteeable
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.lifetime import in_force
from j10ce.policy.overcommit import (
    Inputs,
    ZoneTerms,
    adjusted,
    degraded,
    reclaimable,
    reclaimable_zones,
    results,
    worth_telling,
)
from j10ce.policy.strategy import EffectiveStrategy
from j10ce.scheduler.cluster import ZERO, resources
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 15.0
SOON_S: Final = 1.0
MOST_NAMED: Final = 3  # objects in the name of a strategy
NO_STRATEGY: Final = EffectiveStrategy()

Policies = Mapping[str, MinimalReservationPolicy]


async def keep_overcommit(
    store: Store,
    view: View,
    wall: Callable[[], float],
    strategies: Callable[[], Strategies] = Strategies,
    every_s: float = LOOK_S,
) -> None:
    """Keep `status.overcommit` of every node true, for ever: a first word soon, others every `every_s`.

    `strategies` are those in force at the moment.
    """
    await view.ready()
    looked: dict[str, float] = {}
    while True:
        now, nodes, new = view.silence.now, view.all(NodeQoS), {n.metadata.name for n in view.nodes() if _is_new(n)}
        due = [n for n in nodes if n.metadata.name in new or now - looked.get(n.metadata.name, -math.inf) >= every_s]
        looked = {n.metadata.name: looked.get(n.metadata.name, now) for n in nodes}
        looked |= {n.metadata.name: now for n in due}
        await look(store, view, due, wall(), strategies())
        await asyncio.sleep(min(every_s, SOON_S))


async def look(store: Store, view: View, nodes: Sequence[NodeQoS], wall: float, strategies: Strategies) -> None:
    """Tell the amounts of these nodes that have moved."""
    policies = held_policies(view) if nodes else {}
    async for node in unhurried(nodes):
        bad = node.metadata.name in view.nonsense  # it lends nothing, as one that says nothing
        since_s = math.inf if bad else silent_s(node, view.silence.of(node), wall)
        said = view.documents.strategy(node.metadata.name)
        status = judged(node, policies, wall, strategies, since_s, said)
        if status is not None:
            await _tell(store, replace(node, status=status))


def held_policies(view: View) -> Policies:
    """By source, as they are in force."""
    every = view.all(MinimalReservationPolicy)
    held = ((reference(p), in_force(p, view.documents.revisions(p))) for p in every)
    return {source: policy for source, policy in held if policy is not None}


def _is_new(node: NodeQoS) -> bool:
    """It measures something of which nothing was written yet."""
    return any(f"batch-{resource}" not in node.status.overcommit for resource in node.status.node.demand)


async def _tell(store: Store, node: NodeQoS) -> None:
    try:
        await store.put(node, expect=node.metadata.resource_version, part="status")
    except (Conflict, NotFound):
        return  # its next report brings us back
    spelled = {name: str(q) for name, q in node.status.overcommit.items()}
    log.info("overcommit.tell", node=node.metadata.name, **spelled)


def silent_s(node: NodeQoS, word: Word, wall: float) -> float:
    """Of one that was silent before we came, its condition tells since when."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if not word.doubtful or ready is None or ready.status == "True" or ready.last_transition_time is UNSET:
        return word.silent_s
    return max(word.silent_s, wall - ready.last_transition_time.timestamp())


def judged(
    node: NodeQoS,
    policies: Policies,
    wall: float,
    strategies: Strategies,
    silent_s: float,
    said: EffectiveStrategy = NO_STRATEGY,
) -> NodeQoSStatus | None:
    """The status that a node deserves; None when what it has is good enough. What its strategies say goes over the
    file."""
    status = node.status
    name, strategy = strategies.of(node)
    name, strategy = named(name, said), adjusted(strategy, said.strategy.overcommit)
    silent = silent_s > strategy.degrade.seconds
    known = {} if silent else _known_inputs(node, policies, said.strategy.normalization.ratio)
    terms = degraded(strategy, silent_s, status.overcommit) if silent else reclaimable(strategy, known)
    zones = _nothing(status.overcommit_zones) if silent else reclaimable_zones(strategy, known, _zones(node))
    fresh = results(terms)
    age_s = math.inf if status.overcommit_time is UNSET else abs(wall - status.overcommit_time.timestamp())
    renamed = bool(fresh) and status.overcommit_strategy != name
    before = _flat(status.overcommit, status.overcommit_zones)
    if not renamed and not worth_telling(before, _flat(fresh, zones), strategy, age_s):
        return None
    now = datetime.fromtimestamp(int(wall), UTC)
    return replace(
        status,
        overcommit=fresh,
        overcommit_zones=zones,
        overcommit_strategy=name,
        overcommit_terms=terms,
        overcommit_time=now,
    )


ByZone = Mapping[str, Mapping[str, Quantity]]


def _flat(amounts: Mapping[str, Quantity], zones: ByZone) -> dict[str, Quantity]:
    """All amounts of a node under one name each."""
    return {**amounts, **{f"{zone}/{name}": q for zone, lent in zones.items() for name, q in lent.items()}}


def _nothing(zones: ByZone) -> dict[str, dict[str, Quantity]]:
    return {zone: dict.fromkeys(lent, ZERO) for zone, lent in zones.items()}


def _zones(node: NodeQoS) -> dict[str, dict[str, ZoneTerms]]:
    return {
        zone: {
            resource: ZoneTerms(**{name: _amount(resource, amounts.get(name, ZERO)) for name in ZoneTerms._fields})
            for resource, amounts in resources.items()
        }
        for zone, resources in node.status.node.zones.items()
    }


def named(file_entry: str, said: EffectiveStrategy) -> str:
    """What a node's strategy is called: the entry of the file, and whoever says otherwise."""
    over = sorted({origin for path, origin in said.origins.items() if path.startswith("overcommit.")})
    more = f" and {len(over) - MOST_NAMED} more" if len(over) > MOST_NAMED else ""
    return " + ".join((file_entry, *over[:MOST_NAMED])) + more


def _known_inputs(node: NodeQoS, policies: Policies, worth: float | UnsetType) -> dict[str, Inputs]:
    by_resource = inputs(node, withheld(node, policies))
    if "cpu" in by_resource and worth is not UNSET:
        by_resource["cpu"] = by_resource["cpu"]._replace(worth=worth)
    return by_resource


def inputs(node: NodeQoS, kept: Resources = NOTHING) -> dict[str, Inputs]:
    """By resource, of those whose use the node measures. `kept` may not be lent."""
    report = node.status.node
    capacity = resources(report.capacity)
    headroom = capacity.minus(guaranteeable(capacity))
    by_resource = {}
    for resource, quantities in report.demand.items():
        n = RESOURCES.index(resource)
        demand = {name: _amount(resource, q) for name, q in quantities.items()}
        in_use, predicted = report.usage.get(resource, {}).get("p95"), report.predicted.get(resource, {})
        by_resource[resource] = Inputs(
            capacity=capacity[n],
            headroom=headroom[n],
            node_usage=_known(resource, in_use),
            system=demand.get("system", 0),
            usage=demand.get("usage", 0),
            request=demand.get("request", 0),
            larger=demand.get("larger", 0),
            peak=_known(resource, predicted.get("protected")),
            spare=_known(resource, predicted.get("spare")),
            withheld=kept[n],
        )
    return by_resource


def withheld(node: NodeQoS, policies: Policies) -> Resources:
    """Units held on the node that nobody uses and that their policies do not lend."""
    kept, capacity = NOTHING, resources(node.status.node.capacity)
    for report in node.status.node.reservations:
        policy = policies.get(report.source)
        if policy is not None and policy.spec.lending.mode == "None" and report.units > report.used:
            shape = amounts(policy.spec.minimum, capacity)
            kept = kept.plus(Resources._make(n * (report.units - report.used) for n in shape))
    return kept


def _known(resource: str, quantity: Quantity | None) -> int | None:
    return None if quantity is None else _amount(resource, quantity)


def _amount(resource: str, quantity: Quantity = ZERO) -> int:
    return quantity.millicores() if resource == "cpu" else quantity.bytes()
