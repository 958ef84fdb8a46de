"""Nodes, namespaces, budgets, volumes, groups and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, get_args

from j10ce.model.kube.native import Amounts, Namespace
from j10ce.model.kube.surroundings import (
    ElasticQuotaObject,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PodGroup,
    Service,
    WideNode,
)
from j10ce.scheduler.book.around import (
    BudgetFacts,
    ClaimFacts,
    GroupFacts,
    NamespaceFacts,
    QuotaFacts,
    ServiceFacts,
    VolumeFacts,
)
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, pairs
from j10ce.scheduler.book.shape import Effect, LabelTest
from j10ce.scheduler.reading.shapes import amount_of
from j10ce.scheduler.reading.terms import label_test, node_term

EFFECTS: Final[tuple[str, ...]] = get_args(Effect)


def node_facts(node: WideNode) -> NodeFacts:
    """A taint of an effect that nobody knows says nothing."""
    return NodeFacts(
        node.metadata.name,
        node.metadata.labels,
        _amounts(node.status.allocatable),
        tuple(NodeTaint(t.key, t.value, cast("Effect", t.effect)) for t in node.spec.taints if t.effect in EFFECTS),
        node.spec.unschedulable,
        {name: max(0, image.size_bytes) for image in node.status.images for name in image.names},
    )


def namespace_facts(namespace: Namespace) -> NamespaceFacts:
    return NamespaceFacts(namespace.metadata.name, namespace.metadata.labels)


def budget_facts(budget: PodDisruptionBudget) -> BudgetFacts:
    meta, status, selector = budget.metadata, budget.status, label_test(budget.spec.selector)
    return BudgetFacts(
        meta.namespace, meta.name, selector, status.disruptions_allowed, frozenset(status.disrupted_pods)
    )


def claim_facts(claim: PersistentVolumeClaim) -> ClaimFacts:
    bound = claim.spec.volume_name if claim.status.phase in ("", "Bound") else ""
    return ClaimFacts(claim.metadata.namespace, claim.metadata.name, bound)


def volume_facts(volume: PersistentVolume) -> VolumeFacts:
    required = volume.spec.node_affinity.required
    nodes = None if required is None else tuple(map(node_term, required.node_selector_terms))
    return VolumeFacts(volume.metadata.name, nodes)


def group_facts(group: PodGroup) -> GroupFacts:
    meta, spec = group.metadata, group.spec
    return GroupFacts(meta.namespace, meta.name, max(1, spec.min_member), float(max(0, spec.schedule_timeout_seconds)))


def quota_facts(quota: ElasticQuotaObject) -> QuotaFacts:
    meta, spec = quota.metadata, quota.spec
    return QuotaFacts(meta.namespace, meta.name, _amounts(spec.min), _amounts(spec.max))


def service_facts(service: Service) -> ServiceFacts:
    """One without a selector chooses no pods."""
    meta, wanted = service.metadata, service.spec.selector
    return ServiceFacts(meta.namespace, meta.name, LabelTest(pairs(wanted)) if wanted else None)


def _amounts(amounts: Amounts) -> Mapping[str, int]:
    return {name: amount_of(name, quantity) for name, quantity in amounts.items()}
