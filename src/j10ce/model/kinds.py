"""The public objects: group `j10ce.io/v1alpha1`, one shape over REST, SQLite, and files.

Every struct is frozen and strict; a field that says nothing is UNSET, so that zero stays a legal wish.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal

from msgspec import UNSET, UnsetType, field

from j10ce.model.bounds import Annotations, Labels, Named, Number, Several, Text, Word, Words
from j10ce.model.parts.progress import NodeCount, RolloutStatus
from j10ce.model.parts.reported import AppliedChange as AppliedChange
from j10ce.model.parts.reported import Capability as Capability
from j10ce.model.parts.reported import EffectiveFloor as EffectiveFloor
from j10ce.model.parts.reported import EvictionRequest as EvictionRequest
from j10ce.model.parts.reported import InterferenceReport as InterferenceReport
from j10ce.model.parts.reported import OvercommitTerm as OvercommitTerm
from j10ce.model.parts.reported import ReservationReport as ReservationReport
from j10ce.model.parts.sections import Bind as Bind
from j10ce.model.parts.sections import CacheSection as CacheSection
from j10ce.model.parts.sections import CpuSection as CpuSection
from j10ce.model.parts.sections import IoSection as IoSection
from j10ce.model.parts.sections import MemorySection as MemorySection
from j10ce.model.parts.sections import NetworkSection as NetworkSection
from j10ce.model.parts.sections import ReclaimSection as ReclaimSection
from j10ce.model.parts.strategy import Strategy
from j10ce.model.parts.strict import Strict as Strict
from j10ce.model.parts.totals import TierTotal, TopologyReport
from j10ce.model.quantity import Duration, Quantity

GROUP: Final = "j10ce.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "j10ce.io/v1alpha1"

PROFILE_LABEL: Final = "j10ce.io/qos-profile"
IGNORE_LABEL: Final = "j10ce.io/ignore"
BUILT_IN_LABEL: Final = "j10ce.io/built-in"
TRACE_ANNOTATION: Final = "j10ce.io/traceparent"  # W3C trace context of the request that last changed the spec
PLACEMENT_LABEL: Final = "j10ce.io/placement"  # on a policy that `place` made: the workload it waits for
WORKLOAD_LABEL: Final = "j10ce.io/workload"  # every workload carries its own name under it
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"  # every namespace carries its own name under it


class Tier(Enum):
    """From the most to the least protected; `rank` orders them."""

    SYSTEM = "system"
    EXCLUSIVE = "exclusive"
    RESERVED = "reserved"
    SENSITIVE = "sensitive"
    STANDARD = "standard"
    BESTEFFORT = "besteffort"

    @property
    def rank(self) -> int:
        """Higher is better protected."""
        return len(Tier) - list(Tier).index(self)


class Requirement(Strict, frozen=True, kw_only=True):
    key: Word
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Words = ()


class Selector(Strict, frozen=True, kw_only=True):
    """Kubernetes' label selector: all parts must hold; an empty one selects everything."""

    match_labels: Labels = field(default_factory=dict)
    match_expressions: Several[Requirement] = ()


class Owner(Strict, frozen=True, kw_only=True):
    api_version: Word
    kind: Word
    name: Word
    uid: Word
    controller: bool = False  # what tools of Kubernetes make of it; we keep it for them
    block_owner_deletion: bool = False


class ManagedFields(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """Who decided which fields, as Kubernetes writes it down: server-side apply refuses to take them from others."""

    manager: Word = ""
    operation: Literal["Apply", "Update"] = "Update"
    api_version: Word = API_VERSION
    time: datetime | UnsetType = UNSET  # when the set of fields last changed
    fields_type: Literal["FieldsV1"] = "FieldsV1"
    fields_v1: dict[str, Any] = field(default_factory=dict)
    subresource: Word | UnsetType = UNSET  # status


class Meta(Strict, frozen=True, kw_only=True):
    name: Word = ""
    generate_name: Word = ""
    namespace: Word = ""
    uid: Word = ""
    resource_version: Word = ""
    generation: Number = 0
    creation_timestamp: datetime | UnsetType = UNSET
    labels: Labels = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    owner_references: Several[Owner] = ()
    managed_fields: Several[ManagedFields] = ()  # kept by the API


class Rollout(Strict, frozen=True, kw_only=True):
    canary_percent: int = 100
    paused: bool = False
    stop_on_failures: bool = True
    attempt: int = 0  # raised to try again after a stop


class QoSProfileSpec(Strict, frozen=True, kw_only=True):
    tier: Tier
    priority: int = 0
    selector: Selector | UnsetType = UNSET
    namespace_selector: Selector | UnsetType = UNSET
    rollout: Rollout | UnsetType = UNSET
    cpu: CpuSection = CpuSection()
    memory: MemorySection = MemorySection()
    network: NetworkSection = NetworkSection()
    io: IoSection = IoSection()
    cache: CacheSection = CacheSection()


class Condition(Strict, frozen=True, kw_only=True):
    type: Word
    status: Literal["True", "False", "Unknown"]
    reason: Text = ""
    message: Text = ""
    last_transition_time: datetime | UnsetType = UNSET
    observed_generation: Number = 0


class HoldStatus(Strict, frozen=True, kw_only=True):
    observed_generation: Number = 0
    conditions: tuple[Condition, ...] = ()


class PolicyStatus(Strict, frozen=True, kw_only=True):
    observed_generation: Number = 0
    conditions: tuple[Condition, ...] = ()
    nodes: NodeCount = NodeCount()
    rollout: RolloutStatus = RolloutStatus()


class Minimum(Strict, frozen=True, kw_only=True):
    cpu: Quantity | UnsetType = UNSET
    memory: Quantity | UnsetType = UNSET
    network: Quantity | UnsetType = UNSET
    disk_read: Quantity | UnsetType = UNSET
    disk_write: Quantity | UnsetType = UNSET


class Lending(Strict, frozen=True, kw_only=True):
    mode: Literal["None", "Reclaimable"] = "None"
    within: Duration | UnsetType = UNSET  # 30 s when not said


class MinimalReservationPolicySpec(Strict, frozen=True, kw_only=True):
    minimum: Minimum
    selector: Selector = Selector()
    units: int = 0
    node_selector: Selector | UnsetType = UNSET
    lending: Lending = Lending()
    ttl: Duration | UnsetType = UNSET
    rollout: Rollout | UnsetType = UNSET


class NodeStrategySpec(Strategy, frozen=True, kw_only=True):
    node_selector: Selector | UnsetType = UNSET  # every node when not said
    priority: int = 0  # among strategies that say the same field the highest has the word, then the later name
    rollout: Rollout | UnsetType = UNSET


class UnitCount(Strict, frozen=True, kw_only=True):
    wanted: int = 0
    placed: int = 0
    used: int = 0
    lent: int = 0


class Witness(Strict, frozen=True, kw_only=True):
    node: Word
    units: int


class MinimalReservationPolicyStatus(PolicyStatus, frozen=True, kw_only=True):
    phase: Literal["Pending", "Active", "Degraded", "Expired"] = "Pending"
    admitted_generation: int = 0  # whose units the fleet holds: the present one unless an edit was refused; 0: none
    units: UnitCount = UnitCount()
    witness: tuple[Witness, ...] = ()
    effective: tuple[EffectiveFloor, ...] = ()


class NodeQoSSpec(Strict, frozen=True, kw_only=True):
    unschedulable: bool = False
    disarmed: bool = False
    labels: Labels = field(default_factory=dict)


class NodeReport(Strict, frozen=True, kw_only=True):
    """The agent's part of a NodeQoS status."""

    heartbeat: datetime | UnsetType = UNSET
    boot_id: Word = ""
    agent_version: Word = ""
    armed: bool = False
    document: Word = ""  # hash of the node document in force
    capacity: Named[Quantity] = field(default_factory=dict)
    topology: TopologyReport | UnsetType = UNSET
    reserved: Named[Quantity] = field(default_factory=dict)
    claimed: Named[Named[Quantity]] = field(default_factory=dict)  # namespace -> promised to running workloads
    best_effort: Named[Quantity] = field(default_factory=dict)  # that tier besteffort uses
    usage: Named[Named[Quantity]] = field(default_factory=dict)  # resource -> p50, p95, p98, max
    # 5m, 10m, 30m -> resource -> avg, p50, p90, p95, p99
    usage_over: Named[Named[Named[Quantity]]] = field(default_factory=dict)
    demand: Named[Named[Quantity]] = field(default_factory=dict)  # resource -> what best effort leaves alone
    zones: Named[Named[Named[Quantity]]] = field(default_factory=dict)  # memory node -> resource -> capacity, bound
    predicted: Named[Named[Quantity]] = field(default_factory=dict)  # resource -> peak of all, of the protected
    pressure: Named[float] = field(default_factory=dict)
    capabilities: Several[Capability] = ()
    workloads: Number = 0
    reservations: Several[ReservationReport] = ()
    effective: Several[EffectiveFloor] = ()
    failing: Named[Text] = field(default_factory=dict)  # object -> why what it asks for did not happen here
    conditions: Several[Condition] = ()
    last_plan: Named[Number] = field(default_factory=dict)  # outcome -> count
    applied: Several[AppliedChange] = ()  # since the last report that arrived
    evictions: Several[EvictionRequest] = ()  # wanted now; what is not listed any more is wanted no more
    tiers: Named[TierTotal] = field(default_factory=dict)  # tier -> its totals, also of workloads that are left out
    interference: Several[InterferenceReport] = ()  # who suffers from whom, the worst first
    left_out: Named[Number] = field(default_factory=dict)  # part of this report -> entries that did not fit


class NodeQoSStatus(Strict, frozen=True, kw_only=True):
    node: NodeReport = NodeReport()
    overcommit: Named[Quantity] = field(default_factory=dict)  # result -> what may be lent to reclaimable workloads
    overcommit_zones: Named[Named[Quantity]] = field(default_factory=dict)  # the same of each memory node
    overcommit_strategy: Word = ""
    overcommit_terms: tuple[OvercommitTerm, ...] = ()
    overcommit_time: datetime | UnsetType = UNSET
    conditions: tuple[Condition, ...] = ()


class HoldSpec(Strict, frozen=True, kw_only=True):
    """A freeze on settings of one target; without a value they are left as they are."""

    target: Word
    knobs: Words
    expires: datetime
    why: Text
    who: Word = ""
    node: Word = ""  # in force there alone; empty: wherever the target is
    value: Text | UnsetType = UNSET
    breaks_reservation: bool = False


class WorkloadSpec(Strict, frozen=True, kw_only=True):
    node: Word = ""
    requests: Minimum = Minimum()
    limits: Minimum = Minimum()
    minimum: Minimum = Minimum()  # a reservation for this one workload (`run --min-cpu`)
    node_selector: Selector | UnsetType = UNSET  # where `place` may put it
    parts: Words = ()


class WorkloadStatus(Strict, frozen=True, kw_only=True):
    phase: Literal["Pending", "Running", "Gone"] = "Pending"
    profile: Word = ""
    tier: Tier | UnsetType = UNSET
    native_class: Word = ""
    cgroup: Text = ""
    floor: Named[Quantity] = field(default_factory=dict)
    usage: Named[Quantity] = field(default_factory=dict)
    effective: tuple[EffectiveFloor, ...] = ()
    conditions: tuple[Condition, ...] = ()


class CredentialSpec(Strict, frozen=True, kw_only=True):
    """What a token may do. The token itself is kept nowhere: its secret's hash recognises it."""

    role: Literal["viewer", "editor", "node", "admin", "bootstrap"]
    hash: Word  # sha256:<64 hex digits> of the secret
    node: Word = ""  # role node: the one it speaks for
    expires: datetime | UnsetType = UNSET
    uses: int | UnsetType = UNSET  # role bootstrap: how many nodes it may still enrol
    former_hash: Word = ""  # of the secret before the last rotation
    former_expires: datetime | UnsetType = UNSET


class QoSProfile(Strict, frozen=True, kw_only=True, omit_defaults=False):
    metadata: Meta
    spec: QoSProfileSpec
    status: PolicyStatus = PolicyStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["QoSProfile"] = "QoSProfile"


class MinimalReservationPolicy(Strict, frozen=True, kw_only=True, omit_defaults=False):
    metadata: Meta
    spec: MinimalReservationPolicySpec
    status: MinimalReservationPolicyStatus = MinimalReservationPolicyStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["MinimalReservationPolicy"] = "MinimalReservationPolicy"


class NodeStrategy(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """What is said of nodes: how best effort gives way there, what may burst, who is evicted, what is lent."""

    metadata: Meta
    spec: NodeStrategySpec = NodeStrategySpec()
    status: PolicyStatus = PolicyStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["NodeStrategy"] = "NodeStrategy"


class NodeQoS(Strict, frozen=True, kw_only=True, omit_defaults=False):
    metadata: Meta
    spec: NodeQoSSpec = NodeQoSSpec()
    status: NodeQoSStatus = NodeQoSStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["NodeQoS"] = "NodeQoS"


class Hold(Strict, frozen=True, kw_only=True, omit_defaults=False):
    metadata: Meta
    spec: HoldSpec
    status: HoldStatus = HoldStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["Hold"] = "Hold"


class Workload(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """Input of `place` and `plan`, and the read-only listing of what a host runs."""

    metadata: Meta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["Workload"] = "Workload"


class PolicyRevision(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """One kept version of a policy's spec; the last ten of each are owned by it."""

    metadata: Meta
    revision: int
    data: dict[str, Any]
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["PolicyRevision"] = "PolicyRevision"


class Credential(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """Recognises the token `j10ce.NAME.SECRET`; for administrators alone."""

    metadata: Meta
    spec: CredentialSpec
    status: PolicyStatus = PolicyStatus()
    api_version: Literal["j10ce.io/v1alpha1"] = API_VERSION
    kind: Literal["Credential"] = "Credential"


PolicySpec = QoSProfileSpec | MinimalReservationPolicySpec | NodeStrategySpec
Policy = QoSProfile | MinimalReservationPolicy | NodeStrategy  # what is rolled out, and has a history
Object = Policy | NodeQoS | Hold | Workload | PolicyRevision | Credential
