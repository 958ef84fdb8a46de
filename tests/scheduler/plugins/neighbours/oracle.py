"""The rules of Kubernetes about pods beside pods, written once more: slowly, one node and one pod at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, PodTerm, SpreadConstraint
from j10ce.scheduler.book.suiting import unwelcome
from tests.scheduler.book.oracle import met

Namespaces = Mapping[str, Mapping[str, str]]


class Scene(NamedTuple):
    nodes: list[NodeFacts]
    pods: list[PodFacts]  # each with its node
    namespaces: Namespaces

    def on(self, node: NodeFacts) -> Iterable[PodFacts]:
        return (pod for pod in self.pods if pod.node == node.name)

    def domain_of(self, pod: PodFacts, key: str) -> str | None:
        return next((n.labels.get(key) for n in self.nodes if n.name == pod.node), None)


# -- spreading


def spread_refuses(scene: Scene, pod: PodFacts, node: NodeFacts) -> str:
    hard = [c for c in pod.shape.spread if c.when_unsatisfiable == "DoNotSchedule"]
    for c in hard:
        domain = node.labels.get(c.topology_key)
        if domain is None:
            return "no domain"
        pods = domains(scene, pod, c, [other.topology_key for other in hard])
        fewest = 0 if len(pods) < c.min_domains else min(pods.values())
        own = int(chosen(c.selector, pod.labels))
        if pods.get(domain, 0) + own - fewest > c.max_skew:
            return "lopsided"
    return ""


def domains(scene: Scene, pod: PodFacts, c: SpreadConstraint, keys: Iterable[str]) -> dict[str, int]:
    pods: dict[str, int] = {}
    for node in scene.nodes:
        if all(key in node.labels for key in keys) and counted(pod, c, node):
            domain = node.labels[c.topology_key]
            pods[domain] = pods.get(domain, 0) + matching(scene, pod, c, node)
    return pods


def counted(pod: PodFacts, c: SpreadConstraint, node: NodeFacts) -> bool:
    if c.node_affinity_policy == "Honor":
        if any(node.labels.get(key) != value for key, value in pod.shape.node_selector):
            return False
        if not met(pod.shape.affinity.nodes, node.name, node.labels):
            return False
    return c.node_taints_policy == "Ignore" or unwelcome(pod.shape, node.taints) is None


def matching(scene: Scene, pod: PodFacts, c: SpreadConstraint, node: NodeFacts) -> int:
    if c.selector == LabelTest():
        return 0
    return sum(
        p.namespace == pod.namespace and p.deleted is None and chosen(c.selector, p.labels) for p in scene.on(node)
    )


def spread_scores(scene: Scene, pod: PodFacts, fitting: list[NodeFacts]) -> list[int]:
    soft = [c for c in pod.shape.spread if c.when_unsatisfiable == "ScheduleAnyway"]
    keys = [c.topology_key for c in soft]
    kept = [node for node in fitting if all(key in node.labels for key in keys)]
    costs: dict[str, int] = {}
    for node in kept:
        cost = 0.0
        for c in soft:
            if c.topology_key == "kubernetes.io/hostname":
                size, pods = len(kept), matching(scene, pod, c, node)
            else:
                size = len({n.labels[c.topology_key] for n in kept})
                pods = domains(scene, pod, c, keys).get(node.labels[c.topology_key], 0)
            cost += pods * math.log(size + 2) + c.max_skew - 1
        costs[node.name] = math.floor(cost + 0.5)
    if not kept or not (high := max(costs.values())):
        return [100 if node.name in costs else 0 for node in fitting]
    low = min(costs.values())
    return [100 * (high + low - costs[n.name]) // high if n.name in costs else 0 for n in fitting]


# -- beside and far away


def means(scene: Scene, term: PodTerm, owner: PodFacts, other: PodFacts) -> bool:
    names = term.namespaces or ((owner.namespace,) if term.namespace_selector is None else ())
    inside = other.namespace in names or (
        term.namespace_selector is not None
        and chosen(term.namespace_selector, scene.namespaces.get(other.namespace, {}))
    )
    return inside and chosen(term.selector, other.labels)


def beside_refuses(scene: Scene, pod: PodFacts, node: NodeFacts) -> str:
    affinity = pod.shape.affinity
    if affinity.pods and not near(scene, pod, node):
        return "not near"
    for term in affinity.anti_pods:
        if any(means(scene, term, pod, p) and together(scene, term, p, node) for p in scene.pods):
            return "too near"
    for p in scene.pods:
        for term in p.shape.affinity.anti_pods:
            if means(scene, term, p, pod) and together(scene, term, p, node):
                return "unwelcome"
    return ""


def near(scene: Scene, pod: PodFacts, node: NodeFacts) -> bool:
    terms = pod.shape.affinity.pods
    if any(term.topology_key not in node.labels for term in terms):
        return False
    wanted = [p for p in scene.pods if all(means(scene, term, pod, p) for term in terms)]
    if not any(scene.domain_of(p, t.topology_key) is not None for p in wanted for t in terms):
        return all(means(scene, term, pod, pod) for term in terms)
    return all(any(together(scene, term, p, node) for p in wanted) for term in terms)


def together(scene: Scene, term: PodTerm, pod: PodFacts, node: NodeFacts) -> bool:
    domain = scene.domain_of(pod, term.topology_key)
    return domain is not None and node.labels.get(term.topology_key) == domain


def beside_scores(scene: Scene, pod: PodFacts, fitting: list[NodeFacts], hard_weight: int) -> list[int]:
    worth = Counter[tuple[str, str]]()
    for p in scene.pods:
        wishes = [
            *((w, t, pod, p) for w, t in pod.shape.affinity.preferred_pods),
            *((-w, t, pod, p) for w, t in pod.shape.affinity.preferred_anti_pods),
            *((w, t, p, pod) for w, t in p.shape.affinity.preferred_pods),
            *((-w, t, p, pod) for w, t in p.shape.affinity.preferred_anti_pods),
            *((hard_weight, t, p, pod) for t in p.shape.affinity.pods),
        ]
        for weight, term, owner, other in wishes:
            domain = scene.domain_of(p, term.topology_key)
            if domain is not None and means(scene, term, owner, other):
                worth[term.topology_key, domain] += weight
    raw = [sum(worth[key, value] for key, value in node.labels.items()) for node in fitting]
    low, high = min(raw, default=0), max(raw, default=0)
    return [math.trunc(100.0 * ((r - low) / (high - low))) if high > low else 0 for r in raw]
