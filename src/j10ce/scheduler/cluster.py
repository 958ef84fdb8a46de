"""The fleet as a scheduler sees it: one row per node, sorted by name, in arrays.

It is derived from NodeQoS and policies alone, and is the same whatever order they come in. A decision reads it and
never changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from j10ce.model.kinds import MinimalReservationPolicy, Minimum, NodeQoS, ReservationReport
from j10ce.model.quantity import Quantity
from j10ce.model.resource import RESOURCES, Resources
from j10ce.policy.document.document import HOSTNAME_LABEL, labels_of, reference
from j10ce.policy.entitlement.ledger import guaranteeable
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.lifetime import over
from j10ce.policy.select import Labels, Test, compiled

Amounts: TypeAlias = npt.NDArray[np.int64]  # [node, resource]
Rows: TypeAlias = npt.NDArray[np.int64]  # numbers of nodes
Mask: TypeAlias = npt.NDArray[np.bool_]  # [node]
Scores: TypeAlias = npt.NDArray[np.float64]  # [node], 0 to 1

STANDS_ON: Final = "j10ce.io/stands-on"  # annotation of a placement: the policy whose unit its workload will take
ZERO: Final = Quantity(0)
MOST: Final = 1 << 50  # of one resource on one node: a sum over any fleet stays within 64 bits
NO_AMOUNTS: Final = Resources()


class Row(NamedTuple):
    """What one NodeQoS says; worth keeping as long as the object is the same."""

    name: str
    labels: Labels
    capacity: Resources
    room: Resources  # that may be promised
    reserved: Resources  # promised, as its agent reports
    cordoned: bool
    armed: bool
    features: frozenset[str]
    load: float  # dominant share of the peak to expect
    spare: Resources  # reclaimable, and not asked for by the best-effort workloads that are there
    reports: Mapping[str, ReservationReport]


class OpenPledge(NamedTuple):
    """A policy in force: whom it is for, what one unit is, and how many nobody uses, by row."""

    source: str
    namespace: str
    test: Test
    minimum: Minimum
    lends: bool
    nodes: Test | None  # None: every node
    unused: Mapping[int, int]


class Cluster(NamedTuple):
    names: Sequence[str]
    labels: tuple[Labels, ...]
    capacity: Amounts
    room: Amounts
    promised: Amounts  # to workloads, and to units that nobody uses yet
    lendable: Amounts  # the part of `promised` that is lent while nobody uses it
    silent_s: Scores  # since the last report; infinite: never
    silent: Mask  # for so long that it is not there
    cordoned: Mask
    armed: Mask
    features: Mapping[str, Mask]
    load: Scores
    spare: Amounts  # what best-effort workloads may still ask for
    policies: tuple[OpenPledge, ...]  # by name

    @property
    def free(self) -> Amounts:
        """Below zero where a node shrank below its promises."""
        return self.room - self.promised

    def holders(self, node: int, resource: int) -> list[tuple[str, int]]:
        """Who holds unused units of a resource on a node, the largest first."""
        held = [(h, h.unused[node]) for h in self.policies if node in h.unused]
        amounts_held = [(h.source, amounts(h.minimum, NO_AMOUNTS)[resource] * units) for h, units in held]
        return sorted((f for f in amounts_held if f[1]), key=lambda f: (-f[1], f[0]))


def row(node: NodeQoS) -> Row:
    report = node.status.node
    capacity = resources(report.capacity)
    return Row(
        node.metadata.name,
        labels_of(node),
        capacity,
        guaranteeable(capacity),
        resources(report.reserved),
        node.spec.unschedulable,
        report.armed and not node.spec.disarmed,
        frozenset(c.feature for c in report.capabilities if c.ok),
        _load(node, capacity),
        _spare(node),
        {r.source: r for r in report.reservations},
    )


def share_of(amount: Amounts, whole: Amounts) -> Scores:
    """[node, resource]: of a resource that a node lacks, anything is all."""
    return np.where(whole > 0, amount / np.maximum(whole, 1), amount > 0)


def resources(quantities: Mapping[str, Quantity]) -> Resources:
    """Named quantities as a vector; what is not named is zero."""
    cpu, *rest = (quantities.get(name, ZERO) for name in RESOURCES)
    return Resources._make((cpu.millicores(), *(q.bytes() for q in rest)))


def _load(node: NodeQoS, capacity: Resources) -> float:
    """The predicted peak, or what was in use at most where there is no prediction yet."""
    report = node.status.node
    peaks = {
        name: report.predicted.get(name, {}).get("node") or report.usage.get(name, {}).get("max", ZERO)
        for name in ("cpu", "memory")
    }
    return min(1.0, resources(peaks).dominant_share(capacity)) if any(capacity) else 1.0


def _spare(node: NodeQoS) -> Resources:
    overcommit, demand = node.status.overcommit, node.status.node.demand
    lent = resources({name: overcommit[f"batch-{name}"] for name in RESOURCES if f"batch-{name}" in overcommit})
    return lent.minus(resources({name: asked.get("besteffort", ZERO) for name, asked in demand.items()}))


def assemble(
    rows: Iterable[Row],
    policies: Iterable[MinimalReservationPolicy],
    silent_s: Mapping[str, float],
    silent: Collection[str] = (),
    *,
    wall: float,
) -> Cluster:
    """`policies` as they are in force; those that are over are left out. `silent_s` by node; `silent` are not there."""
    nodes = sorted(rows, key=lambda r: r.name)
    index = {r.name: n for n, r in enumerate(nodes)}
    live = sorted((p for p in policies if not over(p, wall)), key=reference)
    promised, lendable = _table(r.reserved for r in nodes), _table([NO_AMOUNTS] * len(nodes))
    spoken = _spoken_for(live, nodes, index)
    held = tuple(_hold(policy, nodes, index, promised, lendable, spoken) for policy in live)
    features = {feature for r in nodes for feature in r.features}
    return Cluster(
        tuple(r.name for r in nodes),
        tuple(r.labels for r in nodes),
        _table(r.capacity for r in nodes),
        _table(r.room for r in nodes),
        promised,
        lendable,
        np.array([silent_s[r.name] for r in nodes], np.float64),
        np.array([r.name in silent for r in nodes], np.bool_),
        np.array([r.cordoned for r in nodes], np.bool_),
        np.array([r.armed for r in nodes], np.bool_),
        {feature: np.array([feature in r.features for r in nodes], np.bool_) for feature in sorted(features)},
        np.array([r.load for r in nodes], np.float64),
        _table(r.spare for r in nodes),
        held,
    )


def _table(rows: Iterable[Resources]) -> Amounts:
    listed = list(rows)
    return np.array(listed, np.int64).reshape(len(listed), len(RESOURCES))


def _hold(
    policy: MinimalReservationPolicy,
    nodes: list[Row],
    index: Mapping[str, int],
    promised: Amounts,
    lendable: Amounts,
    spoken: Counter[tuple[str, int]],
) -> OpenPledge:
    """One policy's units: what its nodes do not hold yet is promised on top of what they report."""
    source, spec = reference(policy), policy.spec
    where, lends = None if spec.node_selector is UNSET else compiled(spec.node_selector), False
    units = _placed(policy, nodes, index)
    unused = {n: count - _used(nodes[n], source) - spoken[source, n] for n, count in units.items()}
    if units:
        rows, shape = list(units), amounts(spec.minimum, NO_AMOUNTS)  # units are no percentages
        promised[rows] += _times(shape, [c - _units(nodes[n], source) for n, c in units.items()])
        if lends := spec.lending.mode == "Reclaimable":
            lendable[rows] += _times(shape, [c - _used(nodes[n], source) for n, c in units.items()])
    unused = {n: left for n, left in unused.items() if left > 0}
    return OpenPledge(source, policy.metadata.namespace, compiled(spec.selector), spec.minimum, lends, where, unused)


def _times(shape: Resources, counts: Iterable[int]) -> Amounts:
    """[count, resource]; more than any machine has is as much as is counted."""
    return _table(Resources._make(min(MOST, n * max(0, count)) for n in shape) for count in counts)


def _units(node: Row, source: str) -> int:
    report = node.reports.get(source)
    return report.units if report else 0


def _used(node: Row, source: str) -> int:
    report = node.reports.get(source)
    return report.used if report else 0


def _placed(policy: MinimalReservationPolicy, nodes: list[Row], index: Mapping[str, int]) -> Mapping[int, int]:
    """Units by row, used ones included: the witness, or what nodes say where there is none."""
    if not policy.spec.units:
        return {}
    if witness := policy.status.witness:
        units: Counter[int] = Counter()
        for w in witness:
            if w.node in index:
                units[index[w.node]] += w.units
        return units
    source = reference(policy)
    return {n: r.reports[source].units for n, r in enumerate(nodes) if source in r.reports}


def _spoken_for(
    policies: Iterable[MinimalReservationPolicy], nodes: list[Row], index: Mapping[str, int]
) -> Counter[tuple[str, int]]:
    """Units that a placement has given to a workload which has not arrived yet, by policy and row."""
    spoken: Counter[tuple[str, int]] = Counter()
    for policy in policies:
        source, node = policy.metadata.annotations.get(STANDS_ON), node_of(policy)
        if source and node in index:
            report = nodes[index[node]].reports.get(reference(policy))
            spoken[source, index[node]] += report is None or not report.workloads
    return spoken


def node_of(policy: MinimalReservationPolicy) -> str:
    """The one node that a placement is for; empty for other policies."""
    wanted = policy.spec.node_selector
    return "" if wanted is UNSET else wanted.match_labels.get(HOSTNAME_LABEL, "")
