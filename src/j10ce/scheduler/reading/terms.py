"""Selectors, affinities, tolerations and spreading: parts of a pod, as a scheduler keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from j10ce.model.kube.placing import (
    NativeAffinity,
    NativeExpression,
    NativeNodeTerm,
    NativePodTerm,
    NativePreferredNode,
    NativeSelector,
    NativeSpread,
    NativeToleration,
)
from j10ce.scheduler.book.facts import pairs
from j10ce.scheduler.book.shape import (
    Affinity,
    LabelTest,
    NodeExpression,
    NodeTerm,
    PodTerm,
    PreferredNodeTerm,
    SpreadConstraint,
    Toleration,
    WeightedPodTerm,
)


def label_test(selector: NativeSelector | None) -> LabelTest | None:
    if selector is None:
        return None
    return LabelTest(pairs(selector.match_labels), expressions(selector.match_expressions))


def expressions(native: Iterable[NativeExpression]) -> tuple[NodeExpression, ...]:
    return tuple(NodeExpression(e.key, e.operator, e.values) for e in native)


def node_term(native: NativeNodeTerm) -> NodeTerm:
    return NodeTerm(expressions(native.match_expressions), expressions(native.match_fields))


def preferred_node(native: NativePreferredNode) -> PreferredNodeTerm:
    return PreferredNodeTerm(native.weight, node_term(native.preference))


def affinity(native: NativeAffinity) -> Affinity:
    nodes, pods, apart = native.node_affinity, native.pod_affinity, native.pod_anti_affinity
    required = None if nodes.required is None else tuple(map(node_term, nodes.required.node_selector_terms))
    return Affinity(
        required,
        tuple(map(preferred_node, nodes.preferred)),
        tuple(map(_pod_term, pods.required)),
        tuple(WeightedPodTerm(p.weight, _pod_term(p.pod_affinity_term)) for p in pods.preferred),
        tuple(map(_pod_term, apart.required)),
        tuple(WeightedPodTerm(p.weight, _pod_term(p.pod_affinity_term)) for p in apart.preferred),
    )


def tolerations(native: Iterable[NativeToleration]) -> tuple[Toleration, ...]:
    return tuple(Toleration(t.key, t.operator or "Equal", t.value, t.effect) for t in native)


def spread(native: Iterable[NativeSpread], labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """`labels` of the pod: keys of matchLabelKeys that it lacks do not count."""
    return tuple(
        SpreadConstraint(
            s.max_skew,
            s.topology_key,
            s.when_unsatisfiable,
            _narrowed(label_test(s.label_selector), s.match_label_keys, labels),
            s.min_domains,
            s.node_affinity_policy,
            s.node_taints_policy,
        )
        for s in native
    )


def _narrowed(test: LabelTest | None, keys: Iterable[str], labels: Mapping[str, str]) -> LabelTest | None:
    """Pods with the same values of some labels as the pod itself."""
    own = tuple(NodeExpression(key, "In", (labels[key],)) for key in keys if key in labels)
    if test is None or not own:
        return test
    return test._replace(expressions=test.expressions + tuple(e for e in own if e not in test.expressions))


def _pod_term(native: NativePodTerm) -> PodTerm:
    return PodTerm(
        label_test(native.label_selector),
        native.topology_key,
        native.namespaces,
        label_test(native.namespace_selector),
    )
