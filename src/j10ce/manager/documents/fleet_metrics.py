"""The fleet in numbers, counted when somebody asks: policies, units, nodes, rollouts, what may be lent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from j10ce.manager.documents.view import View
from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS

PHASES: Final = ("Pending", "Active", "Degraded", "Expired")


def families(view: View) -> Iterable[GaugeMetricFamily]:
    policies, nodes = view.all(MinimalReservationPolicy), view.all(NodeQoS)
    phases = Counter(p.status.phase for p in policies)
    yield _family("j10ce_policies", "Reservation policies.", "phase", {name: phases[name] for name in PHASES})
    yield _family("j10ce_reservation_units", "Units of all policies.", "state", units(policies))
    rollouts = [p.status.rollout for p in view.policies()]
    stopped = sum(bool(rollout.stopped) for rollout in rollouts)
    yield GaugeMetricFamily("j10ce_rollouts_stopped", "Rollouts that failures have stopped.", stopped)
    silent, bad = sum(view.silence.of(node).doubtful for node in view.nodes()) - len(view.nonsense), len(view.nonsense)
    ready = len(nodes) - silent - bad
    yield _family("j10ce_nodes", "Nodes.", "state", {"ready": ready, "silent": silent, "badreport": bad})
    yield _family("j10ce_overcommit", "What may be lent, all nodes together.", "resource", lendable(nodes))


def unreadable(by_kind: Mapping[str, int]) -> Iterable[GaugeMetricFamily]:
    yield _family("j10ce_objects_unreadable", "Stored objects that make no sense: left out.", "kind", by_kind)


def certificates(ends: Mapping[str, float]) -> Iterable[GaugeMetricFamily]:
    says = "When each certificate ends, in seconds since 1970."
    yield _family("j10ce_manager_certificate_expires_seconds", says, "certificate", ends)


def units(policies: Iterable[MinimalReservationPolicy]) -> dict[str, float]:
    counts = [p.status.units for p in policies]
    return {
        "wanted": sum(u.wanted for u in counts),
        "placed": sum(u.placed for u in counts),
        "used": sum(u.used for u in counts),
        "lent": sum(u.lent for u in counts),
    }


def lendable(nodes: Iterable[NodeQoS]) -> dict[str, float]:
    """CPUs and bytes."""
    total: Counter[str] = Counter()
    for node in nodes:
        for resource, amount in node.status.overcommit.items():
            total[resource] += float(amount.amount)  # type: ignore[assignment]
    return dict(total)


def _family(name: str, says: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    made = GaugeMetricFamily(name, says, labels=(label,))
    for value, number in values.items():
        made.add_metric((value,), number)
    return made
