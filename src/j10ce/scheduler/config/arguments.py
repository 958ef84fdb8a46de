"""What plugins can be told, by `pluginConfig`: the arguments of Kubernetes by their names, and ours."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from j10ce.model.kube.placing import NativeNodeAffinity, NativeSpread
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration
from j10ce.scheduler.plugins.qos.settings import QosSettings

QOS: Final = QosSettings()
Percent: TypeAlias = Annotated[int, Meta(ge=0, le=100)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, le=86_400)]


class Arguments(Strict, frozen=True, kw_only=True):
    """Kubernetes lets arguments say of which kind they are."""

    api_version: str = ""
    kind: str = ""


class ResourceArgument(Strict, frozen=True, kw_only=True):
    name: str
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class UtilisationPoint(Strict, frozen=True, kw_only=True):
    utilization: Percent
    score: Annotated[int, Meta(ge=0, le=10)]


class CapacityRatio(Strict, frozen=True, kw_only=True):
    shape: Annotated[tuple[UtilisationPoint, ...], Meta(min_length=1)]


CPU_AND_MEMORY = (ResourceArgument(name="cpu"), ResourceArgument(name="memory"))


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceArgument, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: CapacityRatio | None = None


class FitArguments(Arguments, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class BalancedArguments(Arguments, frozen=True, kw_only=True):
    resources: tuple[ResourceArgument, ...] = CPU_AND_MEMORY


class SpreadArguments(Arguments, frozen=True, kw_only=True):
    default_constraints: tuple[NativeSpread, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class InterPodArguments(Arguments, frozen=True, kw_only=True):
    hard_pod_affinity_weight: Percent = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArguments(Arguments, frozen=True, kw_only=True):
    added_affinity: NativeNodeAffinity = NativeNodeAffinity()


class PreemptionArguments(Arguments, frozen=True, kw_only=True):
    min_candidate_nodes_percentage: Percent = 10
    min_candidate_nodes_absolute: Annotated[int, Meta(ge=0)] = 100


class VolumeArguments(Arguments, frozen=True, kw_only=True):
    """Understood, and of no use: nothing is bound that would take its time."""

    bind_timeout_seconds: Seconds = 600
    shape: tuple[UtilisationPoint, ...] = ()


class GroupArguments(Arguments, frozen=True, kw_only=True):
    permit_waiting_time_seconds: Seconds = 60
    pod_group_backoff_seconds: Seconds = 0


class QosArguments(Arguments, frozen=True, kw_only=True):
    mode: Literal["lazy", "classic"] = QOS.mode
    slo: Share = QOS.slo  # of owners that do not say
    safety_margin: Duration = Duration(QOS.safety_margin_s)  # classic
    minimum_running_time: Duration = Duration(QOS.minimum_running_s)  # classic
    acceptable_preemption_overhead: Share = QOS.acceptable_overhead
    periods: tuple[Duration, ...] = tuple(map(Duration, QOS.periods_s))  # lazy
    margin: Duration = Duration(QOS.margin_s)  # lazy
    hysteresis: Duration = Duration(QOS.hysteresis_s)  # lazy
    budget: Share = QOS.budget  # lazy
    admission: Literal["off", "greedy", "predictive"] = QOS.admission
