"""What a scheduler reads beside pods: nodes with their images, owners of pods, budgets, volumes, groups and quotas."""

from __future__ import annotations

from msgspec import field

from j10ce.model.kube.native import Amounts, Native, NativeObject, NodeSpec, NodeStatus
from j10ce.model.kube.placing import NativeNodeTerms, NativeSelector


class NodeImage(Native, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class WideNodeStatus(NodeStatus, frozen=True, kw_only=True):
    images: tuple[NodeImage, ...] = ()


class WideNode(NativeObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: WideNodeStatus = WideNodeStatus()


class OwnerSpec(Native, frozen=True, kw_only=True):
    """Of all kinds of owners; a Job's has no replicas, a Deployment's no completions."""

    replicas: int = 1
    parallelism: int = 1
    completions: int = 0
    selector: NativeSelector | None = None


class OwnerStatus(Native, frozen=True, kw_only=True):
    desired_number_scheduled: int = 0


class PodOwner(NativeObject, frozen=True, kw_only=True):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob."""

    spec: OwnerSpec = OwnerSpec()
    status: OwnerStatus = OwnerStatus()


class BudgetSpec(Native, frozen=True, kw_only=True):
    selector: NativeSelector | None = None


class BudgetStatus(Native, frozen=True, kw_only=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = field(default_factory=dict)  # names of those that are about to go


class PodDisruptionBudget(NativeObject, frozen=True, kw_only=True):
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class ClaimSpec(Native, frozen=True, kw_only=True):
    volume_name: str = ""


class ClaimStatus(Native, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(NativeObject, frozen=True, kw_only=True):
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodes(Native, frozen=True, kw_only=True):
    required: NativeNodeTerms | None = None


class VolumeSpec(Native, frozen=True, kw_only=True):
    node_affinity: VolumeNodes = VolumeNodes()


class PersistentVolume(NativeObject, frozen=True, kw_only=True):
    spec: VolumeSpec = VolumeSpec()


class PodGroupSpec(Native, frozen=True, kw_only=True):
    min_member: int = 1
    schedule_timeout_seconds: int = 0


class PodGroup(NativeObject, frozen=True, kw_only=True):
    """Of scheduling.x-k8s.io."""

    spec: PodGroupSpec = PodGroupSpec()


class QuotaSpec(Native, frozen=True, kw_only=True):
    min: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)


class ElasticQuotaObject(NativeObject, frozen=True, kw_only=True):
    """Of scheduling.x-k8s.io: its kind is ElasticQuota."""

    spec: QuotaSpec = QuotaSpec()

    @property
    def kind(self) -> str:
        return "ElasticQuota"


class ServiceSpec(Native, frozen=True, kw_only=True):
    selector: dict[str, str] = field(default_factory=dict)


class Service(NativeObject, frozen=True, kw_only=True):
    spec: ServiceSpec = ServiceSpec()
