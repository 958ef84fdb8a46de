"""The fleet on Kubernetes: nodes by what they can allocate, filled with what their pods ask for.

kube-scheduler fills nodes by requests, so requests are what units have to fit beside. What agents report comes on top:
whether they enforce, how much they can guarantee, and which pods they had to refuse a floor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.manager.documents.silence import Hear
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.policies.pledges import to_pledge
from j10ce.manager.policies.roster import Changes, Roster
from j10ce.model.kinds import IGNORE_LABEL, MinimalReservationPolicy, NodeQoS, NodeReport
from j10ce.model.kube import native
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.document.document import HOSTNAME_LABEL, labels_of, reference
from j10ce.policy.entitlement.ledger import guaranteeable
from j10ce.policy.lifetime import over
from j10ce.policy.payer import rank
from j10ce.policy.select import Labels, Test
from j10ce.scheduler.book.units import Guest
from j10ce.scheduler.cluster import resources
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.ledger.pledge import Charge, FleetNode, Pledge

AGENT_GONE_S: Final = 300.0  # a node whose agent is silent for longer takes no more units
CLOSING_TAINTS: Final = (
    "node.kubernetes.io/",
    "node-role.kubernetes.io/",
)  # what nobody's pods tolerate


class NodeInputs(NamedTuple):
    """All that a node is made of, but policies."""

    node: native.Node
    moves: int  # of its pods
    reported: NodeQoS | None
    silent: bool

    def same(self, other: NodeInputs | None) -> bool:
        """A heartbeat is no news."""
        if other is None or self.node is not other.node or self.moves != other.moves:
            return False
        same = self.reported is other.reported or _said(self.reported) == _said(other.reported)
        return same and self.silent == other.silent


class Payer(NamedTuple):
    """A pledge on one node, and the floor that it is worth there."""

    pledge: Pledge
    floor: Resources


class Sums:
    """Amounts by namespace; added up in place, as a fleet has a hundred thousand pods."""

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = {}

    def add(self, namespace: str, amount: Resources) -> None:
        total = self._sums.get(namespace)
        if total is None:
            self._sums[namespace] = list(amount)
        else:
            for n, more in enumerate(amount):
                total[n] += more

    def all(self) -> dict[str, Resources]:
        return {namespace: Resources._make(total) for namespace, total in self._sums.items()}


class KubeRoster:
    def __init__(self, occupants: Occupants, book: Occupancy, hear: Hear) -> None:
        self._occupants, self._book, self._hear = occupants, book, hear
        self._known: dict[str, FleetNode] = {}
        self._seen: dict[str, NodeInputs] = {}  # what each was made of
        self._policies: dict[str, MinimalReservationPolicy] = {}
        self._pledges: dict[str, list[Pledge]] = {}  # by namespace
        self._reports: dict[str, NodeQoS] = {}

    def look(self, nodes: Iterable[NodeQoS], policies: Collection[MinimalReservationPolicy], wall: float) -> Changes:
        """Costs what has changed, and a glance at every node."""
        self._reports = {node.metadata.name: node for node in nodes}
        natives = {node.metadata.name: node for node in self._occupants.nodes()}
        dirty = self._take_policies({reference(p): p for p in policies if not over(p, wall)})
        fresh: list[FleetNode] = []
        for name, node in natives.items():
            ground = self._ground(name, node)
            if name in dirty or not ground.same(self._seen.get(name)):
                self._seen[name] = ground
                if (made := self._node(name, node, ground.silent)) != self._known.get(name):
                    fresh.append(made)
        gone = self._known.keys() - natives.keys()
        lost = [n for n in fresh if not any(n.capacity) and n.name in self._known and any(self._known[n.name].capacity)]
        for name in gone:
            del self._known[name], self._seen[name]
        self._known.update((n.name, n) for n in fresh)
        return Changes(fresh, gone, bool(gone or lost))

    def lost(self) -> Iterator[tuple[str, Labels]]:
        return ((name, node.labels) for name, node in self._known.items() if not any(node.capacity))

    def outsiders(self, node: str) -> Sequence[str]:
        """Pods on no unit, whoever placed them."""
        book = self._book
        if node not in book.row:
            return ()
        row = book.row[node]
        whole, standing = Resources._make(book.allocatable[row].tolist()), book.counts[row].standing
        beside = [g for g in list(book.there(row)) if g.uid not in standing and any(g.request)]
        beside.sort(key=lambda g: (-g.request.dominant_share(whole), g.namespace, g.name))
        return [f"{g.namespace}/{g.name}" for g in beside]

    # -- what has changed

    def _take_policies(self, live: Mapping[str, MinimalReservationPolicy]) -> set[str]:
        """The nodes where a change of policies may count."""
        before, self._policies = self._policies, dict(live)
        changed = {
            source
            for source in before.keys() | live.keys()
            if source not in before or source not in live or before[source].spec != live[source].spec
        }
        if not changed:
            return set()
        namespaces = {(before.get(source) or live[source]).metadata.namespace for source in changed}
        concerned = [p for ns in namespaces for p in self._pledges.get(ns, ()) if p.source in changed]
        for namespace in namespaces:
            self._pledges[namespace] = [to_pledge(p) for p in live.values() if p.metadata.namespace == namespace]
            concerned += [p for p in self._pledges[namespace] if p.source in changed]
        return self._touched(concerned)

    def _touched(self, pledges: Iterable[Pledge]) -> set[str]:
        by_namespace: dict[str, list[Test]] = {}
        for pledge in pledges:
            by_namespace.setdefault(pledge.namespace, []).append(pledge.workloads)
        guests = self._book.guests.values()
        return {
            guest.node
            for guest in guests
            if (tests := by_namespace.get(guest.namespace)) and any(test(guest.labels) for test in tests)
        }

    def _ground(self, name: str, node: native.Node) -> NodeInputs:
        book, reported = self._book, self._reports.get(name)
        row = book.row.get(name)
        silent = reported is not None and self._hear(reported).silent_s > AGENT_GONE_S
        return NodeInputs(node, 0 if row is None else book.moves[row], reported, silent)

    # -- what it amounts to

    def _node(self, name: str, node: native.Node, silent: bool) -> FleetNode:
        reported = self._reports.get(name)
        labels = {**node.metadata.labels, HOSTNAME_LABEL: name, **(labels_of(reported) if reported else {})}
        if _lost(node):
            return FleetNode(name, NOTHING, labels, open=False)
        report = reported.status.node if reported else NodeReport()
        capacity = promisable(node, report)
        book = self._book
        guests = sorted(book.there(book.row[name]), key=lambda g: (g.since, g.uid)) if name in book.row else []
        whole = resources(report.capacity or node.status.allocatable)
        return self._filled(
            FleetNode(name, capacity, labels, _open(node, reported, silent=silent)), whole, guests, report
        )

    def _filled(self, node: FleetNode, whole: Resources, guests: Sequence[Guest], report: NodeReport) -> FleetNode:
        """A pod that may stand on a unit counts with what it asks for: the ledger tops it up to the unit's shape.
        One with a floor beyond units counts with that floor at least."""
        waiting = {r.source: r.unprotected for r in report.reservations if r.unprotected}
        paid = self._paid(node.labels, whole, guests, waiting)
        claimed, occupied = Sums(), Sums()
        charged = {source: Charge(0, NOTHING, n) for source, n in waiting.items()}
        for guest in guests:
            if guest.gives_way:
                continue
            left = guest.request
            if (payer := paid.get(guest.uid)) is not None:
                source, floor = payer.pledge.source, payer.floor
                part = left.at_most(floor) if payer.pledge.units else floor
                before = charged.get(source) or Charge(0, NOTHING)
                charged[source] = Charge(before.workloads + 1, before.amount.plus(part), before.waiting)
                claimed.add(guest.namespace, part)
                left = left.minus(part)
            occupied.add(guest.namespace, left)
        effort = resources(report.best_effort) if report.best_effort else NOTHING
        return node._replace(claimed=claimed.all(), charged=charged, occupied=occupied.all(), best_effort=effort)

    def _paid(
        self, labels: Labels, whole: Resources, guests: Iterable[Guest], waiting: Mapping[str, int]
    ) -> dict[str, Payer]:
        """Who pays for a pod, by uid. Those that came last wait, where the agent had to refuse some."""
        by_source: dict[str, list[tuple[str, Payer]]] = {}
        ranked: dict[str, list[Payer]] = {}  # by namespace, as they rank on this node
        for guest in guests:
            if guest.ignored or guest.namespace not in self._pledges:
                continue
            if guest.namespace not in ranked:
                ranked[guest.namespace] = _ranked(self._pledges[guest.namespace], labels, whole)
            payer = next((p for p in ranked[guest.namespace] if p.pledge.workloads(guest.labels)), None)
            if payer is not None:
                by_source.setdefault(payer.pledge.source, []).append((guest.uid, payer))
        return dict(
            paid
            for source, matched in by_source.items()
            for paid in matched[: max(0, len(matched) - waiting.get(source, 0))]
        )


_: type[Roster] = KubeRoster


def _ranked(pledges: Iterable[Pledge], labels: Labels, whole: Resources) -> list[Payer]:
    """Those that concern a node, whoever pays first first."""
    here = (Payer(p, p.floor(whole)) for p in pledges if p.test is None or p.test(labels))
    return sorted(here, key=lambda p: rank(p.floor, p.pledge.source, whole))


def promisable(node: native.Node, report: NodeReport) -> Resources:
    """What the node lets pods have, as far as its agent can guarantee it; that alone knows of networks and disks."""
    has = resources(node.status.allocatable)
    if not report.capacity:
        return has
    can = guaranteeable(resources(report.capacity))
    return can._replace(cpu=min(has.cpu, can.cpu), memory=min(has.memory, can.memory))


def _lost(node: native.Node) -> bool:
    """Its kubelet does not answer. One that has not said anything yet is not lost."""
    return any(c.type == "Ready" and c.status != "True" for c in node.status.conditions)


def _open(node: native.Node, reported: NodeQoS | None, *, silent: bool) -> bool:
    """Takes units: pods may come, and what is promised to them would be enforced."""
    closing = (t for t in node.spec.taints if t.effect != "PreferNoSchedule" and t.key.startswith(CLOSING_TAINTS))
    if node.spec.unschedulable or any(closing) or node.metadata.labels.get(IGNORE_LABEL) == "true":
        return False
    if reported is not None and any(c.type == "Ready" and c.status == "False" for c in reported.status.conditions):
        return False  # what its agent says makes no sense
    if reported is None or reported.status.node.heartbeat is UNSET:
        return reported is None or not reported.spec.unschedulable  # its agent is still to come
    enforces = reported.status.node.armed and not silent
    return enforces and not (reported.spec.unschedulable or reported.spec.disarmed)


def _said(reported: NodeQoS | None) -> tuple[object, ...]:
    """What of its report counts."""
    if reported is None:
        return ()
    report = reported.status.node
    waiting = tuple((r.source, r.unprotected) for r in report.reservations if r.unprotected)
    return reported.metadata.labels, reported.spec, report.armed, report.capacity, report.best_effort, waiting
