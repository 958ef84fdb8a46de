"""Every plugin by name: those of Kubernetes and ours. Other distributions add theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct

from j10ce.scheduler.book.shape import SpreadConstraint
from j10ce.scheduler.config import arguments as given
from j10ce.scheduler.plugins.neighbours.defaults import OF_THE_SYSTEM
from j10ce.scheduler.plugins.neighbours.inter_pod import InterPodAffinity
from j10ce.scheduler.plugins.neighbours.ports import NodePorts
from j10ce.scheduler.plugins.neighbours.spread import PodTopologySpread
from j10ce.scheduler.plugins.nodes.affinity import NodeAffinity
from j10ce.scheduler.plugins.nodes.images import ImageLocality
from j10ce.scheduler.plugins.nodes.named import NodeName
from j10ce.scheduler.plugins.nodes.taints import TaintToleration
from j10ce.scheduler.plugins.nodes.unschedulable import NodeUnschedulable
from j10ce.scheduler.plugins.nodes.volumes import VolumeBinding
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.queueing.gates import SchedulingGates
from j10ce.scheduler.plugins.queueing.groups import Coscheduling
from j10ce.scheduler.plugins.queueing.preemption import DefaultPreemption
from j10ce.scheduler.plugins.queueing.priority import PrioritySort
from j10ce.scheduler.plugins.queueing.quota import ElasticQuota
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from j10ce.scheduler.plugins.resources.load import LoadAware
from j10ce.scheduler.plugins.resources.reserved import Reservation
from j10ce.scheduler.plugins.resources.strategies import (
    Allocated,
    ResourceWeight,
    ShapePoint,
    Strategy,
    ToCapacityRatio,
)
from j10ce.scheduler.reading.terms import node_term, preferred_node, spread

TENTH: Final = 10  # Kubernetes' points of a shape go to 10, scores to 100


class Registered(NamedTuple):
    """`make` gets `args`, read strictly, if there are any. `weight`: of its score, where none is said."""

    make: Callable[..., object]
    args: type[Struct] | None = None
    weight: int = 1


def fit(args: given.FitArguments) -> NodeResourcesFit:
    return NodeResourcesFit(
        strategy(args.scoring_strategy), frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
    )


def strategy(args: given.ScoringStrategy) -> Strategy:
    weights = [ResourceWeight(r.name, r.weight) for r in args.resources]
    if args.type == "RequestedToCapacityRatio":
        points = args.requested_to_capacity_ratio.shape if args.requested_to_capacity_ratio else ()
        return ToCapacityRatio([ShapePoint(p.utilization, p.score * TENTH) for p in points], weights)
    return Allocated("most" if args.type == "MostAllocated" else "least", weights)


def balanced(args: given.BalancedArguments) -> BalancedAllocation:
    return BalancedAllocation([ResourceWeight(r.name, r.weight) for r in args.resources])


def spreading(args: given.SpreadArguments) -> PodTopologySpread:
    own: tuple[SpreadConstraint, ...] = spread(args.default_constraints, {})
    return PodTopologySpread(OF_THE_SYSTEM if args.defaulting_type == "System" else own)


def beside(args: given.InterPodArguments) -> InterPodAffinity:
    return InterPodAffinity(args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods)


def node_affinity(args: given.NodeAffinityArguments) -> NodeAffinity:
    required, preferred = args.added_affinity.required, args.added_affinity.preferred
    return NodeAffinity(
        None if required is None else tuple(map(node_term, required.node_selector_terms)),
        tuple(map(preferred_node, preferred)),
    )


def preemption(args: given.PreemptionArguments) -> DefaultPreemption:
    return DefaultPreemption(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)


def volumes(_: given.VolumeArguments) -> VolumeBinding:
    return VolumeBinding()


def groups(args: given.GroupArguments) -> Coscheduling:
    return Coscheduling(float(args.permit_waiting_time_seconds))


def qos(args: given.QosArguments) -> QosAware:
    settings = QosSettings(
        args.mode,
        args.slo,
        args.safety_margin.seconds,
        args.minimum_running_time.seconds,
        args.acceptable_preemption_overhead,
        tuple(period.seconds for period in args.periods),
        args.margin.seconds,
        args.hysteresis.seconds,
        args.budget,
        args.admission,
    )
    return QosAware(settings)


BUILTIN: Final[Mapping[str, Registered]] = {
    "SchedulingGates": Registered(SchedulingGates),
    "PrioritySort": Registered(PrioritySort),
    "NodeUnschedulable": Registered(NodeUnschedulable),
    "NodeName": Registered(NodeName),
    "TaintToleration": Registered(TaintToleration, weight=3),
    "NodeAffinity": Registered(node_affinity, given.NodeAffinityArguments, 2),
    "NodePorts": Registered(NodePorts),
    "NodeResourcesFit": Registered(fit, given.FitArguments),
    "VolumeBinding": Registered(volumes, given.VolumeArguments),
    "PodTopologySpread": Registered(spreading, given.SpreadArguments, 2),
    "InterPodAffinity": Registered(beside, given.InterPodArguments, 2),
    "DefaultPreemption": Registered(preemption, given.PreemptionArguments),
    "NodeResourcesBalancedAllocation": Registered(balanced, given.BalancedArguments),
    "ImageLocality": Registered(ImageLocality),
    "Coscheduling": Registered(groups, given.GroupArguments),
    "ElasticQuota": Registered(ElasticQuota),
    "Reservation": Registered(Reservation),
    "LoadAware": Registered(LoadAware),
    "QosAware": Registered(qos, given.QosArguments),
}


NO_OTHERS: Final = MappingProxyType[str, Registered]({})


def of_class(made: Any) -> Registered:
    """A plugin of another distribution: its settings are its own `Config`, if it has one."""
    return Registered(made, getattr(made, "Config", None))
