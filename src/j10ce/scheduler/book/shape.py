"""What decides where a pod may run. Pods of one shape are decided alike, so that a hundred of them cost one decision.

Labels and namespace are no part of it: the few plugins that look at other pods ask for the pod itself.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Pairs: TypeAlias = tuple[tuple[str, str], ...]  # a mapping by key, so that equal ones are equal and hashable
Effect: TypeAlias = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
TolerationOperator: TypeAlias = Literal["Equal", "Exists", "Lt", "Gt"]
NodeOperator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class Toleration(NamedTuple):
    key: str = ""  # empty, with Exists: every taint
    operator: TolerationOperator = "Equal"
    value: str = ""
    effect: str = ""  # empty: every effect


class NodeExpression(NamedTuple):
    key: str
    operator: NodeOperator
    values: tuple[str, ...] = ()


class NodeTerm(NamedTuple):
    """All parts must hold; one without parts matches nothing."""

    expressions: tuple[NodeExpression, ...] = ()
    fields: tuple[NodeExpression, ...] = ()  # metadata.name alone


class PreferredNodeTerm(NamedTuple):
    weight: int
    term: NodeTerm


class LabelTest(NamedTuple):
    """A label selector; None in its place selects nothing, an empty one everything."""

    labels: Pairs = ()
    expressions: tuple[NodeExpression, ...] = ()  # without Gt and Lt


class PodTerm(NamedTuple):
    """Pods beside which, or far from which, a pod wants to be."""

    selector: LabelTest | None
    topology_key: str
    namespaces: tuple[str, ...] = ()  # with neither of the two: the pod's own namespace
    namespace_selector: LabelTest | None = None


class WeightedPodTerm(NamedTuple):
    weight: int
    term: PodTerm


class Affinity(NamedTuple):
    """`nodes` None: any node; empty: none of them. Of its terms one is enough."""

    nodes: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[PreferredNodeTerm, ...] = ()
    pods: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[WeightedPodTerm, ...] = ()
    anti_pods: tuple[PodTerm, ...] = ()
    preferred_anti_pods: tuple[WeightedPodTerm, ...] = ()


class SpreadConstraint(NamedTuple):
    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    selector: LabelTest | None  # keys of matchLabelKeys are in it already
    min_domains: int = 1
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class HostPort(NamedTuple):
    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 - every address of the node, as Kubernetes spells it


NO_AFFINITY: Final = Affinity()


class Shape(NamedTuple):
    requests: tuple[tuple[str, int], ...] = ()  # by name: millicores, else whole units; zeros left out
    weighed: tuple[int, int] = (0, 0)  # millicores and bytes as scores count them: something for who asks for nothing
    node_name: str = ""  # spec.nodeName is asked for by DaemonSets of old and by people
    node_selector: Pairs = ()
    affinity: Affinity = NO_AFFINITY
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()  # as nodes list them, tag included; one for each container
