import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIER_UNSPECIFIED: _ClassVar[Tier]
    TIER_SYSTEM: _ClassVar[Tier]
    TIER_EXCLUSIVE: _ClassVar[Tier]
    TIER_RESERVED: _ClassVar[Tier]
    TIER_SENSITIVE: _ClassVar[Tier]
    TIER_STANDARD: _ClassVar[Tier]
    TIER_BESTEFFORT: _ClassVar[Tier]
TIER_UNSPECIFIED: Tier
TIER_SYSTEM: Tier
TIER_EXCLUSIVE: Tier
TIER_RESERVED: Tier
TIER_SENSITIVE: Tier
TIER_STANDARD: Tier
TIER_BESTEFFORT: Tier

class QoSProfile(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: QoSProfileSpec
    status: PolicyStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[QoSProfileSpec, _Mapping]] = ..., status: _Optional[_Union[PolicyStatus, _Mapping]] = ...) -> None: ...

class MinimalReservationPolicy(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: MinimalReservationPolicySpec
    status: MinimalReservationPolicyStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[MinimalReservationPolicySpec, _Mapping]] = ..., status: _Optional[_Union[MinimalReservationPolicyStatus, _Mapping]] = ...) -> None: ...

class NodeStrategy(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: NodeStrategySpec
    status: PolicyStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[NodeStrategySpec, _Mapping]] = ..., status: _Optional[_Union[PolicyStatus, _Mapping]] = ...) -> None: ...

class NodeQoS(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: NodeQoSSpec
    status: NodeQoSStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[NodeQoSSpec, _Mapping]] = ..., status: _Optional[_Union[NodeQoSStatus, _Mapping]] = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: HoldSpec
    status: HoldStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[HoldSpec, _Mapping]] = ..., status: _Optional[_Union[HoldStatus, _Mapping]] = ...) -> None: ...

class Workload(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: WorkloadSpec
    status: WorkloadStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[WorkloadSpec, _Mapping]] = ..., status: _Optional[_Union[WorkloadStatus, _Mapping]] = ...) -> None: ...

class PolicyRevision(_message.Message):
    __slots__ = ("metadata", "revision", "data")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    revision: int
    data: str
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., revision: _Optional[int] = ..., data: _Optional[str] = ...) -> None: ...

class Credential(_message.Message):
    __slots__ = ("metadata", "spec", "status")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    spec: CredentialSpec
    status: PolicyStatus
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[CredentialSpec, _Mapping]] = ..., status: _Optional[_Union[PolicyStatus, _Mapping]] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("metadata", "node", "reservation", "expires", "stands_on", "floor", "message", "refused", "nodes", "dry_run")
    class FloorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RefusedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    STANDS_ON_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    metadata: Meta
    node: str
    reservation: str
    expires: _timestamp_pb2.Timestamp
    stands_on: str
    floor: _containers.ScalarMap[str, str]
    message: str
    refused: _containers.ScalarMap[str, int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeVerdict]
    dry_run: bool
    def __init__(self, metadata: _Optional[_Union[Meta, _Mapping]] = ..., node: _Optional[str] = ..., reservation: _Optional[str] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stands_on: _Optional[str] = ..., floor: _Optional[_Mapping[str, str]] = ..., message: _Optional[str] = ..., refused: _Optional[_Mapping[str, int]] = ..., nodes: _Optional[_Iterable[_Union[NodeVerdict, _Mapping]]] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class NodeCredential(_message.Message):
    __slots__ = ("node", "token", "expires")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    node: str
    token: str
    expires: _timestamp_pb2.Timestamp
    def __init__(self, node: _Optional[str] = ..., token: _Optional[str] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NodeDocument(_message.Message):
    __slots__ = ("node", "hash", "format", "spec", "units", "profiles", "policies", "strategies", "holds")
    class UnitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    STRATEGIES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    node: str
    hash: str
    format: int
    spec: NodeQoSSpec
    units: _containers.ScalarMap[str, int]
    profiles: _containers.RepeatedCompositeFieldContainer[QoSProfile]
    policies: _containers.RepeatedCompositeFieldContainer[MinimalReservationPolicy]
    strategies: _containers.RepeatedCompositeFieldContainer[NodeStrategy]
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    def __init__(self, node: _Optional[str] = ..., hash: _Optional[str] = ..., format: _Optional[int] = ..., spec: _Optional[_Union[NodeQoSSpec, _Mapping]] = ..., units: _Optional[_Mapping[str, int]] = ..., profiles: _Optional[_Iterable[_Union[QoSProfile, _Mapping]]] = ..., policies: _Optional[_Iterable[_Union[MinimalReservationPolicy, _Mapping]]] = ..., strategies: _Optional[_Iterable[_Union[NodeStrategy, _Mapping]]] = ..., holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ...) -> None: ...

class Meta(_message.Message):
    __slots__ = ("name", "generate_name", "namespace", "uid", "resource_version", "generation", "creation_timestamp", "labels", "annotations", "owner_references", "managed_fields")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    GENERATE_NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    OWNER_REFERENCES_FIELD_NUMBER: _ClassVar[int]
    MANAGED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    generate_name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int
    creation_timestamp: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    owner_references: _containers.RepeatedCompositeFieldContainer[Owner]
    managed_fields: _containers.RepeatedCompositeFieldContainer[ManagedFields]
    def __init__(self, name: _Optional[str] = ..., generate_name: _Optional[str] = ..., namespace: _Optional[str] = ..., uid: _Optional[str] = ..., resource_version: _Optional[str] = ..., generation: _Optional[int] = ..., creation_timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., owner_references: _Optional[_Iterable[_Union[Owner, _Mapping]]] = ..., managed_fields: _Optional[_Iterable[_Union[ManagedFields, _Mapping]]] = ...) -> None: ...

class QoSProfileSpec(_message.Message):
    __slots__ = ("tier", "priority", "selector", "namespace_selector", "rollout", "cpu", "memory", "network", "io", "cache")
    TIER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    IO_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    tier: Tier
    priority: int
    selector: Selector
    namespace_selector: Selector
    rollout: Rollout
    cpu: CpuSection
    memory: MemorySection
    network: NetworkSection
    io: IoSection
    cache: CacheSection
    def __init__(self, tier: _Optional[_Union[Tier, str]] = ..., priority: _Optional[int] = ..., selector: _Optional[_Union[Selector, _Mapping]] = ..., namespace_selector: _Optional[_Union[Selector, _Mapping]] = ..., rollout: _Optional[_Union[Rollout, _Mapping]] = ..., cpu: _Optional[_Union[CpuSection, _Mapping]] = ..., memory: _Optional[_Union[MemorySection, _Mapping]] = ..., network: _Optional[_Union[NetworkSection, _Mapping]] = ..., io: _Optional[_Union[IoSection, _Mapping]] = ..., cache: _Optional[_Union[CacheSection, _Mapping]] = ...) -> None: ...

class PolicyStatus(_message.Message):
    __slots__ = ("observed_generation", "conditions", "nodes", "rollout")
    OBSERVED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    observed_generation: int
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    nodes: NodeCount
    rollout: RolloutStatus
    def __init__(self, observed_generation: _Optional[int] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., nodes: _Optional[_Union[NodeCount, _Mapping]] = ..., rollout: _Optional[_Union[RolloutStatus, _Mapping]] = ...) -> None: ...

class MinimalReservationPolicySpec(_message.Message):
    __slots__ = ("minimum", "selector", "units", "node_selector", "lending", "ttl", "rollout")
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    LENDING_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    minimum: Minimum
    selector: Selector
    units: int
    node_selector: Selector
    lending: Lending
    ttl: str
    rollout: Rollout
    def __init__(self, minimum: _Optional[_Union[Minimum, _Mapping]] = ..., selector: _Optional[_Union[Selector, _Mapping]] = ..., units: _Optional[int] = ..., node_selector: _Optional[_Union[Selector, _Mapping]] = ..., lending: _Optional[_Union[Lending, _Mapping]] = ..., ttl: _Optional[str] = ..., rollout: _Optional[_Union[Rollout, _Mapping]] = ...) -> None: ...

class MinimalReservationPolicyStatus(_message.Message):
    __slots__ = ("observed_generation", "conditions", "nodes", "rollout", "phase", "admitted_generation", "units", "witness", "effective")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[MinimalReservationPolicyStatus.Phase]
        PHASE_ACTIVE: _ClassVar[MinimalReservationPolicyStatus.Phase]
        PHASE_DEGRADED: _ClassVar[MinimalReservationPolicyStatus.Phase]
        PHASE_EXPIRED: _ClassVar[MinimalReservationPolicyStatus.Phase]
        PHASE_PENDING: _ClassVar[MinimalReservationPolicyStatus.Phase]
    PHASE_UNSPECIFIED: MinimalReservationPolicyStatus.Phase
    PHASE_ACTIVE: MinimalReservationPolicyStatus.Phase
    PHASE_DEGRADED: MinimalReservationPolicyStatus.Phase
    PHASE_EXPIRED: MinimalReservationPolicyStatus.Phase
    PHASE_PENDING: MinimalReservationPolicyStatus.Phase
    OBSERVED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    observed_generation: int
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    nodes: NodeCount
    rollout: RolloutStatus
    phase: MinimalReservationPolicyStatus.Phase
    admitted_generation: int
    units: UnitCount
    witness: _containers.RepeatedCompositeFieldContainer[Witness]
    effective: _containers.RepeatedCompositeFieldContainer[EffectiveFloor]
    def __init__(self, observed_generation: _Optional[int] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., nodes: _Optional[_Union[NodeCount, _Mapping]] = ..., rollout: _Optional[_Union[RolloutStatus, _Mapping]] = ..., phase: _Optional[_Union[MinimalReservationPolicyStatus.Phase, str]] = ..., admitted_generation: _Optional[int] = ..., units: _Optional[_Union[UnitCount, _Mapping]] = ..., witness: _Optional[_Iterable[_Union[Witness, _Mapping]]] = ..., effective: _Optional[_Iterable[_Union[EffectiveFloor, _Mapping]]] = ...) -> None: ...

class NodeStrategySpec(_message.Message):
    __slots__ = ("suppress", "burst", "profiles", "eviction", "sysctls", "host_applications", "overcommit", "normalization", "interference", "system_cpus", "network", "io", "node_selector", "priority", "rollout")
    class ProfilesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ProfileOverlay
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ProfileOverlay, _Mapping]] = ...) -> None: ...
    SUPPRESS_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    EVICTION_FIELD_NUMBER: _ClassVar[int]
    SYSCTLS_FIELD_NUMBER: _ClassVar[int]
    HOST_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_FIELD_NUMBER: _ClassVar[int]
    NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    INTERFERENCE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_CPUS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    IO_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ROLLOUT_FIELD_NUMBER: _ClassVar[int]
    suppress: SuppressSection
    burst: BurstSection
    profiles: _containers.MessageMap[str, ProfileOverlay]
    eviction: EvictionSection
    sysctls: SysctlSection
    host_applications: _containers.RepeatedCompositeFieldContainer[HostApplication]
    overcommit: OvercommitSection
    normalization: NormalizationSection
    interference: InterferenceSection
    system_cpus: SystemCpusSection
    network: LinksSection
    io: DisksSection
    node_selector: Selector
    priority: int
    rollout: Rollout
    def __init__(self, suppress: _Optional[_Union[SuppressSection, _Mapping]] = ..., burst: _Optional[_Union[BurstSection, _Mapping]] = ..., profiles: _Optional[_Mapping[str, ProfileOverlay]] = ..., eviction: _Optional[_Union[EvictionSection, _Mapping]] = ..., sysctls: _Optional[_Union[SysctlSection, _Mapping]] = ..., host_applications: _Optional[_Iterable[_Union[HostApplication, _Mapping]]] = ..., overcommit: _Optional[_Union[OvercommitSection, _Mapping]] = ..., normalization: _Optional[_Union[NormalizationSection, _Mapping]] = ..., interference: _Optional[_Union[InterferenceSection, _Mapping]] = ..., system_cpus: _Optional[_Union[SystemCpusSection, _Mapping]] = ..., network: _Optional[_Union[LinksSection, _Mapping]] = ..., io: _Optional[_Union[DisksSection, _Mapping]] = ..., node_selector: _Optional[_Union[Selector, _Mapping]] = ..., priority: _Optional[int] = ..., rollout: _Optional[_Union[Rollout, _Mapping]] = ...) -> None: ...

class NodeQoSSpec(_message.Message):
    __slots__ = ("unschedulable", "disarmed", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    DISARMED_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    unschedulable: bool
    disarmed: bool
    labels: _containers.ScalarMap[str, str]
    def __init__(self, unschedulable: _Optional[bool] = ..., disarmed: _Optional[bool] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class NodeQoSStatus(_message.Message):
    __slots__ = ("node", "overcommit", "overcommit_zones", "overcommit_strategy", "overcommit_terms", "overcommit_time", "conditions")
    class OvercommitEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OvercommitZonesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_ZONES_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_TERMS_FIELD_NUMBER: _ClassVar[int]
    OVERCOMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    node: NodeReport
    overcommit: _containers.ScalarMap[str, str]
    overcommit_zones: _containers.MessageMap[str, StringMap]
    overcommit_strategy: str
    overcommit_terms: _containers.RepeatedCompositeFieldContainer[OvercommitTerm]
    overcommit_time: _timestamp_pb2.Timestamp
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    def __init__(self, node: _Optional[_Union[NodeReport, _Mapping]] = ..., overcommit: _Optional[_Mapping[str, str]] = ..., overcommit_zones: _Optional[_Mapping[str, StringMap]] = ..., overcommit_strategy: _Optional[str] = ..., overcommit_terms: _Optional[_Iterable[_Union[OvercommitTerm, _Mapping]]] = ..., overcommit_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ...) -> None: ...

class HoldSpec(_message.Message):
    __slots__ = ("target", "knobs", "expires", "why", "who", "node", "value", "breaks_reservation")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    KNOBS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    BREAKS_RESERVATION_FIELD_NUMBER: _ClassVar[int]
    target: str
    knobs: _containers.RepeatedScalarFieldContainer[str]
    expires: _timestamp_pb2.Timestamp
    why: str
    who: str
    node: str
    value: str
    breaks_reservation: bool
    def __init__(self, target: _Optional[str] = ..., knobs: _Optional[_Iterable[str]] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., why: _Optional[str] = ..., who: _Optional[str] = ..., node: _Optional[str] = ..., value: _Optional[str] = ..., breaks_reservation: _Optional[bool] = ...) -> None: ...

class HoldStatus(_message.Message):
    __slots__ = ("observed_generation", "conditions")
    OBSERVED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    observed_generation: int
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    def __init__(self, observed_generation: _Optional[int] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ...) -> None: ...

class WorkloadSpec(_message.Message):
    __slots__ = ("node", "requests", "limits", "minimum", "node_selector", "parts")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    NODE_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    node: str
    requests: Minimum
    limits: Minimum
    minimum: Minimum
    node_selector: Selector
    parts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., requests: _Optional[_Union[Minimum, _Mapping]] = ..., limits: _Optional[_Union[Minimum, _Mapping]] = ..., minimum: _Optional[_Union[Minimum, _Mapping]] = ..., node_selector: _Optional[_Union[Selector, _Mapping]] = ..., parts: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkloadStatus(_message.Message):
    __slots__ = ("phase", "profile", "tier", "native_class", "cgroup", "floor", "usage", "effective", "conditions")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[WorkloadStatus.Phase]
        PHASE_GONE: _ClassVar[WorkloadStatus.Phase]
        PHASE_PENDING: _ClassVar[WorkloadStatus.Phase]
        PHASE_RUNNING: _ClassVar[WorkloadStatus.Phase]
    PHASE_UNSPECIFIED: WorkloadStatus.Phase
    PHASE_GONE: WorkloadStatus.Phase
    PHASE_PENDING: WorkloadStatus.Phase
    PHASE_RUNNING: WorkloadStatus.Phase
    class FloorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UsageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    NATIVE_CLASS_FIELD_NUMBER: _ClassVar[int]
    CGROUP_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    phase: WorkloadStatus.Phase
    profile: str
    tier: Tier
    native_class: str
    cgroup: str
    floor: _containers.ScalarMap[str, str]
    usage: _containers.ScalarMap[str, str]
    effective: _containers.RepeatedCompositeFieldContainer[EffectiveFloor]
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    def __init__(self, phase: _Optional[_Union[WorkloadStatus.Phase, str]] = ..., profile: _Optional[str] = ..., tier: _Optional[_Union[Tier, str]] = ..., native_class: _Optional[str] = ..., cgroup: _Optional[str] = ..., floor: _Optional[_Mapping[str, str]] = ..., usage: _Optional[_Mapping[str, str]] = ..., effective: _Optional[_Iterable[_Union[EffectiveFloor, _Mapping]]] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ...) -> None: ...

class CredentialSpec(_message.Message):
    __slots__ = ("role", "hash", "node", "expires", "uses", "former_hash", "former_expires")
    class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ROLE_UNSPECIFIED: _ClassVar[CredentialSpec.Role]
        ROLE_ADMIN: _ClassVar[CredentialSpec.Role]
        ROLE_BOOTSTRAP: _ClassVar[CredentialSpec.Role]
        ROLE_EDITOR: _ClassVar[CredentialSpec.Role]
        ROLE_NODE: _ClassVar[CredentialSpec.Role]
        ROLE_VIEWER: _ClassVar[CredentialSpec.Role]
    ROLE_UNSPECIFIED: CredentialSpec.Role
    ROLE_ADMIN: CredentialSpec.Role
    ROLE_BOOTSTRAP: CredentialSpec.Role
    ROLE_EDITOR: CredentialSpec.Role
    ROLE_NODE: CredentialSpec.Role
    ROLE_VIEWER: CredentialSpec.Role
    ROLE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    FORMER_HASH_FIELD_NUMBER: _ClassVar[int]
    FORMER_EXPIRES_FIELD_NUMBER: _ClassVar[int]
    role: CredentialSpec.Role
    hash: str
    node: str
    expires: _timestamp_pb2.Timestamp
    uses: int
    former_hash: str
    former_expires: _timestamp_pb2.Timestamp
    def __init__(self, role: _Optional[_Union[CredentialSpec.Role, str]] = ..., hash: _Optional[str] = ..., node: _Optional[str] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., uses: _Optional[int] = ..., former_hash: _Optional[str] = ..., former_expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NodeVerdict(_message.Message):
    __slots__ = ("node", "fits", "score", "reason", "refused_by", "scores")
    NODE_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REFUSED_BY_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    node: str
    fits: bool
    score: float
    reason: str
    refused_by: _containers.RepeatedScalarFieldContainer[str]
    scores: _containers.RepeatedCompositeFieldContainer[Score]
    def __init__(self, node: _Optional[str] = ..., fits: _Optional[bool] = ..., score: _Optional[float] = ..., reason: _Optional[str] = ..., refused_by: _Optional[_Iterable[str]] = ..., scores: _Optional[_Iterable[_Union[Score, _Mapping]]] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("api_version", "kind", "name", "uid", "controller", "block_owner_deletion")
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    BLOCK_OWNER_DELETION_FIELD_NUMBER: _ClassVar[int]
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool
    block_owner_deletion: bool
    def __init__(self, api_version: _Optional[str] = ..., kind: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., controller: _Optional[bool] = ..., block_owner_deletion: _Optional[bool] = ...) -> None: ...

class ManagedFields(_message.Message):
    __slots__ = ("manager", "operation", "api_version", "time", "fields_v1", "subresource")
    class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATION_UNSPECIFIED: _ClassVar[ManagedFields.Operation]
        OPERATION_APPLY: _ClassVar[ManagedFields.Operation]
        OPERATION_UPDATE: _ClassVar[ManagedFields.Operation]
    OPERATION_UNSPECIFIED: ManagedFields.Operation
    OPERATION_APPLY: ManagedFields.Operation
    OPERATION_UPDATE: ManagedFields.Operation
    MANAGER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_V1_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    manager: str
    operation: ManagedFields.Operation
    api_version: str
    time: _timestamp_pb2.Timestamp
    fields_v1: str
    subresource: str
    def __init__(self, manager: _Optional[str] = ..., operation: _Optional[_Union[ManagedFields.Operation, str]] = ..., api_version: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fields_v1: _Optional[str] = ..., subresource: _Optional[str] = ...) -> None: ...

class Selector(_message.Message):
    __slots__ = ("match_labels", "match_expressions")
    class MatchLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MATCH_LABELS_FIELD_NUMBER: _ClassVar[int]
    MATCH_EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    match_labels: _containers.ScalarMap[str, str]
    match_expressions: _containers.RepeatedCompositeFieldContainer[Requirement]
    def __init__(self, match_labels: _Optional[_Mapping[str, str]] = ..., match_expressions: _Optional[_Iterable[_Union[Requirement, _Mapping]]] = ...) -> None: ...

class Rollout(_message.Message):
    __slots__ = ("canary_percent", "paused", "stop_on_failures", "attempt")
    CANARY_PERCENT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    STOP_ON_FAILURES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    canary_percent: int
    paused: bool
    stop_on_failures: bool
    attempt: int
    def __init__(self, canary_percent: _Optional[int] = ..., paused: _Optional[bool] = ..., stop_on_failures: _Optional[bool] = ..., attempt: _Optional[int] = ...) -> None: ...

class CpuSection(_message.Message):
    __slots__ = ("weight", "latency", "pinning", "bind", "burst", "idle", "core_sched", "core_expeller", "suppressible")
    class Latency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LATENCY_UNSPECIFIED: _ClassVar[CpuSection.Latency]
        LATENCY_NORMAL: _ClassVar[CpuSection.Latency]
        LATENCY_REALTIME: _ClassVar[CpuSection.Latency]
    LATENCY_UNSPECIFIED: CpuSection.Latency
    LATENCY_NORMAL: CpuSection.Latency
    LATENCY_REALTIME: CpuSection.Latency
    class Pinning(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PINNING_UNSPECIFIED: _ClassVar[CpuSection.Pinning]
        PINNING_EXCLUSIVE: _ClassVar[CpuSection.Pinning]
        PINNING_NONE: _ClassVar[CpuSection.Pinning]
        PINNING_RESERVED: _ClassVar[CpuSection.Pinning]
        PINNING_SHARED: _ClassVar[CpuSection.Pinning]
    PINNING_UNSPECIFIED: CpuSection.Pinning
    PINNING_EXCLUSIVE: CpuSection.Pinning
    PINNING_NONE: CpuSection.Pinning
    PINNING_RESERVED: CpuSection.Pinning
    PINNING_SHARED: CpuSection.Pinning
    class Bind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BIND_UNSPECIFIED: _ClassVar[CpuSection.Bind]
        BIND_FULL_CORES: _ClassVar[CpuSection.Bind]
        BIND_SPREAD: _ClassVar[CpuSection.Bind]
    BIND_UNSPECIFIED: CpuSection.Bind
    BIND_FULL_CORES: CpuSection.Bind
    BIND_SPREAD: CpuSection.Bind
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    PINNING_FIELD_NUMBER: _ClassVar[int]
    BIND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    CORE_SCHED_FIELD_NUMBER: _ClassVar[int]
    CORE_EXPELLER_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSIBLE_FIELD_NUMBER: _ClassVar[int]
    weight: int
    latency: CpuSection.Latency
    pinning: CpuSection.Pinning
    bind: CpuSection.Bind
    burst: str
    idle: bool
    core_sched: bool
    core_expeller: bool
    suppressible: bool
    def __init__(self, weight: _Optional[int] = ..., latency: _Optional[_Union[CpuSection.Latency, str]] = ..., pinning: _Optional[_Union[CpuSection.Pinning, str]] = ..., bind: _Optional[_Union[CpuSection.Bind, str]] = ..., burst: _Optional[str] = ..., idle: _Optional[bool] = ..., core_sched: _Optional[bool] = ..., core_expeller: _Optional[bool] = ..., suppressible: _Optional[bool] = ...) -> None: ...

class MemorySection(_message.Message):
    __slots__ = ("min_percent", "low_percent", "throttling_percent", "oom_priority", "oom_group", "reclaim", "watermark_percent", "watermark_scale", "watermark_adjust", "page_cache_limit", "page_cache_sync", "kernel_priority", "kernel_priority_oom")
    MIN_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LOW_PERCENT_FIELD_NUMBER: _ClassVar[int]
    THROTTLING_PERCENT_FIELD_NUMBER: _ClassVar[int]
    OOM_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    OOM_GROUP_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_PERCENT_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_SCALE_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_ADJUST_FIELD_NUMBER: _ClassVar[int]
    PAGE_CACHE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_CACHE_SYNC_FIELD_NUMBER: _ClassVar[int]
    KERNEL_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    KERNEL_PRIORITY_OOM_FIELD_NUMBER: _ClassVar[int]
    min_percent: int
    low_percent: int
    throttling_percent: int
    oom_priority: int
    oom_group: bool
    reclaim: ReclaimSection
    watermark_percent: int
    watermark_scale: int
    watermark_adjust: int
    page_cache_limit: str
    page_cache_sync: bool
    kernel_priority: int
    kernel_priority_oom: bool
    def __init__(self, min_percent: _Optional[int] = ..., low_percent: _Optional[int] = ..., throttling_percent: _Optional[int] = ..., oom_priority: _Optional[int] = ..., oom_group: _Optional[bool] = ..., reclaim: _Optional[_Union[ReclaimSection, _Mapping]] = ..., watermark_percent: _Optional[int] = ..., watermark_scale: _Optional[int] = ..., watermark_adjust: _Optional[int] = ..., page_cache_limit: _Optional[str] = ..., page_cache_sync: _Optional[bool] = ..., kernel_priority: _Optional[int] = ..., kernel_priority_oom: _Optional[bool] = ...) -> None: ...

class NetworkSection(_message.Message):
    __slots__ = ("traffic_class", "floor", "ceiling", "egress", "ingress")
    class TrafficClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TRAFFIC_CLASS_UNSPECIFIED: _ClassVar[NetworkSection.TrafficClass]
        TRAFFIC_CLASS_BULK: _ClassVar[NetworkSection.TrafficClass]
        TRAFFIC_CLASS_CRITICAL: _ClassVar[NetworkSection.TrafficClass]
        TRAFFIC_CLASS_NORMAL: _ClassVar[NetworkSection.TrafficClass]
    TRAFFIC_CLASS_UNSPECIFIED: NetworkSection.TrafficClass
    TRAFFIC_CLASS_BULK: NetworkSection.TrafficClass
    TRAFFIC_CLASS_CRITICAL: NetworkSection.TrafficClass
    TRAFFIC_CLASS_NORMAL: NetworkSection.TrafficClass
    TRAFFIC_CLASS_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    EGRESS_FIELD_NUMBER: _ClassVar[int]
    INGRESS_FIELD_NUMBER: _ClassVar[int]
    traffic_class: NetworkSection.TrafficClass
    floor: str
    ceiling: str
    egress: NetworkDirection
    ingress: NetworkDirection
    def __init__(self, traffic_class: _Optional[_Union[NetworkSection.TrafficClass, str]] = ..., floor: _Optional[str] = ..., ceiling: _Optional[str] = ..., egress: _Optional[_Union[NetworkDirection, _Mapping]] = ..., ingress: _Optional[_Union[NetworkDirection, _Mapping]] = ...) -> None: ...

class IoSection(_message.Message):
    __slots__ = ("weight", "read_limit", "write_limit", "read_iops_limit", "write_iops_limit", "latency")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    READ_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WRITE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    READ_IOPS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WRITE_IOPS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    weight: int
    read_limit: str
    write_limit: str
    read_iops_limit: int
    write_iops_limit: int
    latency: str
    def __init__(self, weight: _Optional[int] = ..., read_limit: _Optional[str] = ..., write_limit: _Optional[str] = ..., read_iops_limit: _Optional[int] = ..., write_iops_limit: _Optional[int] = ..., latency: _Optional[str] = ...) -> None: ...

class CacheSection(_message.Message):
    __slots__ = ("llc_start_percent", "llc_end_percent", "memory_bandwidth_percent")
    LLC_START_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LLC_END_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BANDWIDTH_PERCENT_FIELD_NUMBER: _ClassVar[int]
    llc_start_percent: int
    llc_end_percent: int
    memory_bandwidth_percent: int
    def __init__(self, llc_start_percent: _Optional[int] = ..., llc_end_percent: _Optional[int] = ..., memory_bandwidth_percent: _Optional[int] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("type", "status", "reason", "message", "last_transition_time", "observed_generation")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[Condition.Status]
        STATUS_FALSE: _ClassVar[Condition.Status]
        STATUS_TRUE: _ClassVar[Condition.Status]
        STATUS_UNKNOWN: _ClassVar[Condition.Status]
    STATUS_UNSPECIFIED: Condition.Status
    STATUS_FALSE: Condition.Status
    STATUS_TRUE: Condition.Status
    STATUS_UNKNOWN: Condition.Status
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_TRANSITION_TIME_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_GENERATION_FIELD_NUMBER: _ClassVar[int]
    type: str
    status: Condition.Status
    reason: str
    message: str
    last_transition_time: _timestamp_pb2.Timestamp
    observed_generation: int
    def __init__(self, type: _Optional[str] = ..., status: _Optional[_Union[Condition.Status, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., last_transition_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., observed_generation: _Optional[int] = ...) -> None: ...

class NodeCount(_message.Message):
    __slots__ = ("wanted", "applied", "failing", "silent", "named")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    wanted: int
    applied: int
    failing: int
    silent: int
    named: _containers.RepeatedCompositeFieldContainer[FailingNode]
    def __init__(self, wanted: _Optional[int] = ..., applied: _Optional[int] = ..., failing: _Optional[int] = ..., silent: _Optional[int] = ..., named: _Optional[_Iterable[_Union[FailingNode, _Mapping]]] = ...) -> None: ...

class RolloutStatus(_message.Message):
    __slots__ = ("revision", "change", "reached", "stopped", "back", "first", "stable", "applied")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    BACK_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    revision: int
    change: str
    reached: int
    stopped: str
    back: _containers.RepeatedScalarFieldContainer[str]
    first: str
    stable: int
    applied: _timestamp_pb2.Timestamp
    def __init__(self, revision: _Optional[int] = ..., change: _Optional[str] = ..., reached: _Optional[int] = ..., stopped: _Optional[str] = ..., back: _Optional[_Iterable[str]] = ..., first: _Optional[str] = ..., stable: _Optional[int] = ..., applied: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Minimum(_message.Message):
    __slots__ = ("cpu", "memory", "network", "disk_read", "disk_write")
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    DISK_READ_FIELD_NUMBER: _ClassVar[int]
    DISK_WRITE_FIELD_NUMBER: _ClassVar[int]
    cpu: str
    memory: str
    network: str
    disk_read: str
    disk_write: str
    def __init__(self, cpu: _Optional[str] = ..., memory: _Optional[str] = ..., network: _Optional[str] = ..., disk_read: _Optional[str] = ..., disk_write: _Optional[str] = ...) -> None: ...

class Lending(_message.Message):
    __slots__ = ("mode", "within")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[Lending.Mode]
        MODE_NONE: _ClassVar[Lending.Mode]
        MODE_RECLAIMABLE: _ClassVar[Lending.Mode]
    MODE_UNSPECIFIED: Lending.Mode
    MODE_NONE: Lending.Mode
    MODE_RECLAIMABLE: Lending.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    mode: Lending.Mode
    within: str
    def __init__(self, mode: _Optional[_Union[Lending.Mode, str]] = ..., within: _Optional[str] = ...) -> None: ...

class UnitCount(_message.Message):
    __slots__ = ("wanted", "placed", "used", "lent")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    LENT_FIELD_NUMBER: _ClassVar[int]
    wanted: int
    placed: int
    used: int
    lent: int
    def __init__(self, wanted: _Optional[int] = ..., placed: _Optional[int] = ..., used: _Optional[int] = ..., lent: _Optional[int] = ...) -> None: ...

class Witness(_message.Message):
    __slots__ = ("node", "units")
    NODE_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    node: str
    units: int
    def __init__(self, node: _Optional[str] = ..., units: _Optional[int] = ...) -> None: ...

class EffectiveFloor(_message.Message):
    __slots__ = ("node", "workload", "resource", "promised", "effective", "reason", "source")
    NODE_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    node: str
    workload: str
    resource: str
    promised: str
    effective: str
    reason: str
    source: str
    def __init__(self, node: _Optional[str] = ..., workload: _Optional[str] = ..., resource: _Optional[str] = ..., promised: _Optional[str] = ..., effective: _Optional[str] = ..., reason: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class SuppressSection(_message.Message):
    __slots__ = ("mode", "threshold_percent", "min_percent", "buffer_cpus")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[SuppressSection.Mode]
        MODE_AUTO: _ClassVar[SuppressSection.Mode]
        MODE_BUFFER: _ClassVar[SuppressSection.Mode]
        MODE_CPUSET: _ClassVar[SuppressSection.Mode]
        MODE_QUOTA: _ClassVar[SuppressSection.Mode]
    MODE_UNSPECIFIED: SuppressSection.Mode
    MODE_AUTO: SuppressSection.Mode
    MODE_BUFFER: SuppressSection.Mode
    MODE_CPUSET: SuppressSection.Mode
    MODE_QUOTA: SuppressSection.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MIN_PERCENT_FIELD_NUMBER: _ClassVar[int]
    BUFFER_CPUS_FIELD_NUMBER: _ClassVar[int]
    mode: SuppressSection.Mode
    threshold_percent: int
    min_percent: int
    buffer_cpus: str
    def __init__(self, mode: _Optional[_Union[SuppressSection.Mode, str]] = ..., threshold_percent: _Optional[int] = ..., min_percent: _Optional[int] = ..., buffer_cpus: _Optional[str] = ...) -> None: ...

class BurstSection(_message.Message):
    __slots__ = ("policy", "static_percent", "quota_percent", "period", "share_pool_percent")
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        POLICY_UNSPECIFIED: _ClassVar[BurstSection.Policy]
        POLICY_AUTO: _ClassVar[BurstSection.Policy]
        POLICY_NONE: _ClassVar[BurstSection.Policy]
        POLICY_QUOTA: _ClassVar[BurstSection.Policy]
        POLICY_STATIC: _ClassVar[BurstSection.Policy]
    POLICY_UNSPECIFIED: BurstSection.Policy
    POLICY_AUTO: BurstSection.Policy
    POLICY_NONE: BurstSection.Policy
    POLICY_QUOTA: BurstSection.Policy
    POLICY_STATIC: BurstSection.Policy
    POLICY_FIELD_NUMBER: _ClassVar[int]
    STATIC_PERCENT_FIELD_NUMBER: _ClassVar[int]
    QUOTA_PERCENT_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    SHARE_POOL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    policy: BurstSection.Policy
    static_percent: int
    quota_percent: int
    period: str
    share_pool_percent: int
    def __init__(self, policy: _Optional[_Union[BurstSection.Policy, str]] = ..., static_percent: _Optional[int] = ..., quota_percent: _Optional[int] = ..., period: _Optional[str] = ..., share_pool_percent: _Optional[int] = ...) -> None: ...

class ProfileOverlay(_message.Message):
    __slots__ = ("cpu", "memory", "cache", "network", "io")
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    IO_FIELD_NUMBER: _ClassVar[int]
    cpu: CpuOverlay
    memory: MemoryOverlay
    cache: CacheSection
    network: NetworkSection
    io: IoSection
    def __init__(self, cpu: _Optional[_Union[CpuOverlay, _Mapping]] = ..., memory: _Optional[_Union[MemoryOverlay, _Mapping]] = ..., cache: _Optional[_Union[CacheSection, _Mapping]] = ..., network: _Optional[_Union[NetworkSection, _Mapping]] = ..., io: _Optional[_Union[IoSection, _Mapping]] = ...) -> None: ...

class EvictionSection(_message.Message):
    __slots__ = ("mode", "per_minute", "cool_down", "memory", "cpu", "allocatable", "priority_threshold")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[EvictionSection.Mode]
        MODE_ENFORCE: _ClassVar[EvictionSection.Mode]
        MODE_PROPOSE: _ClassVar[EvictionSection.Mode]
    MODE_UNSPECIFIED: EvictionSection.Mode
    MODE_ENFORCE: EvictionSection.Mode
    MODE_PROPOSE: EvictionSection.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    COOL_DOWN_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    mode: EvictionSection.Mode
    per_minute: int
    cool_down: str
    memory: MemoryEviction
    cpu: CpuEviction
    allocatable: AllocatableEviction
    priority_threshold: int
    def __init__(self, mode: _Optional[_Union[EvictionSection.Mode, str]] = ..., per_minute: _Optional[int] = ..., cool_down: _Optional[str] = ..., memory: _Optional[_Union[MemoryEviction, _Mapping]] = ..., cpu: _Optional[_Union[CpuEviction, _Mapping]] = ..., allocatable: _Optional[_Union[AllocatableEviction, _Mapping]] = ..., priority_threshold: _Optional[int] = ...) -> None: ...

class SysctlSection(_message.Message):
    __slots__ = ("min_free_kbytes_factor", "watermark_scale_factor", "sched_features", "sched_group_identity", "sched_idle_saver_wmark", "memcg_reap_background", "page_cache_limit")
    MIN_FREE_KBYTES_FACTOR_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_SCALE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    SCHED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    SCHED_GROUP_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SCHED_IDLE_SAVER_WMARK_FIELD_NUMBER: _ClassVar[int]
    MEMCG_REAP_BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    PAGE_CACHE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    min_free_kbytes_factor: int
    watermark_scale_factor: int
    sched_features: _containers.RepeatedScalarFieldContainer[str]
    sched_group_identity: bool
    sched_idle_saver_wmark: int
    memcg_reap_background: bool
    page_cache_limit: bool
    def __init__(self, min_free_kbytes_factor: _Optional[int] = ..., watermark_scale_factor: _Optional[int] = ..., sched_features: _Optional[_Iterable[str]] = ..., sched_group_identity: _Optional[bool] = ..., sched_idle_saver_wmark: _Optional[int] = ..., memcg_reap_background: _Optional[bool] = ..., page_cache_limit: _Optional[bool] = ...) -> None: ...

class HostApplication(_message.Message):
    __slots__ = ("name", "cgroup", "profile", "priority")
    class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PRIORITY_UNSPECIFIED: _ClassVar[HostApplication.Priority]
        PRIORITY_BATCH: _ClassVar[HostApplication.Priority]
        PRIORITY_FREE: _ClassVar[HostApplication.Priority]
        PRIORITY_MID: _ClassVar[HostApplication.Priority]
        PRIORITY_PROD: _ClassVar[HostApplication.Priority]
    PRIORITY_UNSPECIFIED: HostApplication.Priority
    PRIORITY_BATCH: HostApplication.Priority
    PRIORITY_FREE: HostApplication.Priority
    PRIORITY_MID: HostApplication.Priority
    PRIORITY_PROD: HostApplication.Priority
    NAME_FIELD_NUMBER: _ClassVar[int]
    CGROUP_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    cgroup: str
    profile: str
    priority: HostApplication.Priority
    def __init__(self, name: _Optional[str] = ..., cgroup: _Optional[str] = ..., profile: _Optional[str] = ..., priority: _Optional[_Union[HostApplication.Priority, str]] = ...) -> None: ...

class OvercommitSection(_message.Message):
    __slots__ = ("cpu", "memory", "degrade", "refresh", "difference")
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DEGRADE_FIELD_NUMBER: _ClassVar[int]
    REFRESH_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    cpu: LawSection
    memory: LawSection
    degrade: str
    refresh: str
    difference: float
    def __init__(self, cpu: _Optional[_Union[LawSection, _Mapping]] = ..., memory: _Optional[_Union[LawSection, _Mapping]] = ..., degrade: _Optional[str] = ..., refresh: _Optional[str] = ..., difference: _Optional[float] = ...) -> None: ...

class NormalizationSection(_message.Message):
    __slots__ = ("ratio",)
    RATIO_FIELD_NUMBER: _ClassVar[int]
    ratio: float
    def __init__(self, ratio: _Optional[float] = ...) -> None: ...

class InterferenceSection(_message.Message):
    __slots__ = ("mode",)
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[InterferenceSection.Mode]
        MODE_ACT: _ClassVar[InterferenceSection.Mode]
        MODE_OBSERVE: _ClassVar[InterferenceSection.Mode]
        MODE_OFF: _ClassVar[InterferenceSection.Mode]
    MODE_UNSPECIFIED: InterferenceSection.Mode
    MODE_ACT: InterferenceSection.Mode
    MODE_OBSERVE: InterferenceSection.Mode
    MODE_OFF: InterferenceSection.Mode
    MODE_FIELD_NUMBER: _ClassVar[int]
    mode: InterferenceSection.Mode
    def __init__(self, mode: _Optional[_Union[InterferenceSection.Mode, str]] = ...) -> None: ...

class SystemCpusSection(_message.Message):
    __slots__ = ("cpus", "exclusive")
    CPUS_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    cpus: str
    exclusive: bool
    def __init__(self, cpus: _Optional[str] = ..., exclusive: _Optional[bool] = ...) -> None: ...

class LinksSection(_message.Message):
    __slots__ = ("take_over", "headroom_percent", "links")
    class LinksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: LinkOverlay
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[LinkOverlay, _Mapping]] = ...) -> None: ...
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    take_over: bool
    headroom_percent: int
    links: _containers.MessageMap[str, LinkOverlay]
    def __init__(self, take_over: _Optional[bool] = ..., headroom_percent: _Optional[int] = ..., links: _Optional[_Mapping[str, LinkOverlay]] = ...) -> None: ...

class DisksSection(_message.Message):
    __slots__ = ("disks",)
    class DisksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: DiskOverlay
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[DiskOverlay, _Mapping]] = ...) -> None: ...
    DISKS_FIELD_NUMBER: _ClassVar[int]
    disks: _containers.MessageMap[str, DiskOverlay]
    def __init__(self, disks: _Optional[_Mapping[str, DiskOverlay]] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("heartbeat", "boot_id", "agent_version", "armed", "document", "capacity", "topology", "reserved", "claimed", "best_effort", "usage", "usage_over", "demand", "zones", "predicted", "pressure", "capabilities", "workloads", "reservations", "effective", "failing", "conditions", "last_plan", "applied", "evictions", "tiers", "interference", "left_out")
    class CapacityEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ReservedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ClaimedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    class BestEffortEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UsageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    class UsageOverEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMapMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMapMap, _Mapping]] = ...) -> None: ...
    class DemandEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    class ZonesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMapMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMapMap, _Mapping]] = ...) -> None: ...
    class PredictedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    class PressureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class FailingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LastPlanEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TiersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TierTotal
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TierTotal, _Mapping]] = ...) -> None: ...
    class LeftOutEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    ARMED_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_OVER_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    ZONES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    LAST_PLAN_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    INTERFERENCE_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    heartbeat: _timestamp_pb2.Timestamp
    boot_id: str
    agent_version: str
    armed: bool
    document: str
    capacity: _containers.ScalarMap[str, str]
    topology: TopologyReport
    reserved: _containers.ScalarMap[str, str]
    claimed: _containers.MessageMap[str, StringMap]
    best_effort: _containers.ScalarMap[str, str]
    usage: _containers.MessageMap[str, StringMap]
    usage_over: _containers.MessageMap[str, StringMapMap]
    demand: _containers.MessageMap[str, StringMap]
    zones: _containers.MessageMap[str, StringMapMap]
    predicted: _containers.MessageMap[str, StringMap]
    pressure: _containers.ScalarMap[str, float]
    capabilities: _containers.RepeatedCompositeFieldContainer[Capability]
    workloads: int
    reservations: _containers.RepeatedCompositeFieldContainer[ReservationReport]
    effective: _containers.RepeatedCompositeFieldContainer[EffectiveFloor]
    failing: _containers.ScalarMap[str, str]
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    last_plan: _containers.ScalarMap[str, int]
    applied: _containers.RepeatedCompositeFieldContainer[AppliedChange]
    evictions: _containers.RepeatedCompositeFieldContainer[EvictionRequest]
    tiers: _containers.MessageMap[str, TierTotal]
    interference: _containers.RepeatedCompositeFieldContainer[InterferenceReport]
    left_out: _containers.ScalarMap[str, int]
    def __init__(self, heartbeat: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., boot_id: _Optional[str] = ..., agent_version: _Optional[str] = ..., armed: _Optional[bool] = ..., document: _Optional[str] = ..., capacity: _Optional[_Mapping[str, str]] = ..., topology: _Optional[_Union[TopologyReport, _Mapping]] = ..., reserved: _Optional[_Mapping[str, str]] = ..., claimed: _Optional[_Mapping[str, StringMap]] = ..., best_effort: _Optional[_Mapping[str, str]] = ..., usage: _Optional[_Mapping[str, StringMap]] = ..., usage_over: _Optional[_Mapping[str, StringMapMap]] = ..., demand: _Optional[_Mapping[str, StringMap]] = ..., zones: _Optional[_Mapping[str, StringMapMap]] = ..., predicted: _Optional[_Mapping[str, StringMap]] = ..., pressure: _Optional[_Mapping[str, float]] = ..., capabilities: _Optional[_Iterable[_Union[Capability, _Mapping]]] = ..., workloads: _Optional[int] = ..., reservations: _Optional[_Iterable[_Union[ReservationReport, _Mapping]]] = ..., effective: _Optional[_Iterable[_Union[EffectiveFloor, _Mapping]]] = ..., failing: _Optional[_Mapping[str, str]] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., last_plan: _Optional[_Mapping[str, int]] = ..., applied: _Optional[_Iterable[_Union[AppliedChange, _Mapping]]] = ..., evictions: _Optional[_Iterable[_Union[EvictionRequest, _Mapping]]] = ..., tiers: _Optional[_Mapping[str, TierTotal]] = ..., interference: _Optional[_Iterable[_Union[InterferenceReport, _Mapping]]] = ..., left_out: _Optional[_Mapping[str, int]] = ...) -> None: ...

class OvercommitTerm(_message.Message):
    __slots__ = ("result", "step", "name", "amount", "why")
    class Step(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STEP_UNSPECIFIED: _ClassVar[OvercommitTerm.Step]
        STEP_AT_LEAST: _ClassVar[OvercommitTerm.Step]
        STEP_AT_MOST: _ClassVar[OvercommitTerm.Step]
        STEP_MINUS: _ClassVar[OvercommitTerm.Step]
        STEP_PLUS: _ClassVar[OvercommitTerm.Step]
    STEP_UNSPECIFIED: OvercommitTerm.Step
    STEP_AT_LEAST: OvercommitTerm.Step
    STEP_AT_MOST: OvercommitTerm.Step
    STEP_MINUS: OvercommitTerm.Step
    STEP_PLUS: OvercommitTerm.Step
    RESULT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    result: str
    step: OvercommitTerm.Step
    name: str
    amount: str
    why: str
    def __init__(self, result: _Optional[str] = ..., step: _Optional[_Union[OvercommitTerm.Step, str]] = ..., name: _Optional[str] = ..., amount: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("name", "points", "of", "why")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    points: float
    of: float
    why: str
    def __init__(self, name: _Optional[str] = ..., points: _Optional[float] = ..., of: _Optional[float] = ..., why: _Optional[str] = ...) -> None: ...

class Requirement(_message.Message):
    __slots__ = ("key", "operator", "values")
    class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATOR_UNSPECIFIED: _ClassVar[Requirement.Operator]
        OPERATOR_DOES_NOT_EXIST: _ClassVar[Requirement.Operator]
        OPERATOR_EXISTS: _ClassVar[Requirement.Operator]
        OPERATOR_IN: _ClassVar[Requirement.Operator]
        OPERATOR_NOT_IN: _ClassVar[Requirement.Operator]
    OPERATOR_UNSPECIFIED: Requirement.Operator
    OPERATOR_DOES_NOT_EXIST: Requirement.Operator
    OPERATOR_EXISTS: Requirement.Operator
    OPERATOR_IN: Requirement.Operator
    OPERATOR_NOT_IN: Requirement.Operator
    KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    key: str
    operator: Requirement.Operator
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., operator: _Optional[_Union[Requirement.Operator, str]] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class ReclaimSection(_message.Message):
    __slots__ = ("enabled", "target_pressure")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    TARGET_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    target_pressure: float
    def __init__(self, enabled: _Optional[bool] = ..., target_pressure: _Optional[float] = ...) -> None: ...

class NetworkDirection(_message.Message):
    __slots__ = ("floor", "ceiling")
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    CEILING_FIELD_NUMBER: _ClassVar[int]
    floor: str
    ceiling: str
    def __init__(self, floor: _Optional[str] = ..., ceiling: _Optional[str] = ...) -> None: ...

class FailingNode(_message.Message):
    __slots__ = ("node", "why")
    NODE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    node: str
    why: str
    def __init__(self, node: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class CpuOverlay(_message.Message):
    __slots__ = ("weight", "latency", "pinning", "bind", "burst", "idle", "core_sched", "core_expeller", "suppressible")
    class Latency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LATENCY_UNSPECIFIED: _ClassVar[CpuOverlay.Latency]
        LATENCY_NORMAL: _ClassVar[CpuOverlay.Latency]
        LATENCY_REALTIME: _ClassVar[CpuOverlay.Latency]
    LATENCY_UNSPECIFIED: CpuOverlay.Latency
    LATENCY_NORMAL: CpuOverlay.Latency
    LATENCY_REALTIME: CpuOverlay.Latency
    class Pinning(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PINNING_UNSPECIFIED: _ClassVar[CpuOverlay.Pinning]
        PINNING_EXCLUSIVE: _ClassVar[CpuOverlay.Pinning]
        PINNING_NONE: _ClassVar[CpuOverlay.Pinning]
        PINNING_RESERVED: _ClassVar[CpuOverlay.Pinning]
        PINNING_SHARED: _ClassVar[CpuOverlay.Pinning]
    PINNING_UNSPECIFIED: CpuOverlay.Pinning
    PINNING_EXCLUSIVE: CpuOverlay.Pinning
    PINNING_NONE: CpuOverlay.Pinning
    PINNING_RESERVED: CpuOverlay.Pinning
    PINNING_SHARED: CpuOverlay.Pinning
    class Bind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BIND_UNSPECIFIED: _ClassVar[CpuOverlay.Bind]
        BIND_FULL_CORES: _ClassVar[CpuOverlay.Bind]
        BIND_SPREAD: _ClassVar[CpuOverlay.Bind]
    BIND_UNSPECIFIED: CpuOverlay.Bind
    BIND_FULL_CORES: CpuOverlay.Bind
    BIND_SPREAD: CpuOverlay.Bind
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    PINNING_FIELD_NUMBER: _ClassVar[int]
    BIND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    CORE_SCHED_FIELD_NUMBER: _ClassVar[int]
    CORE_EXPELLER_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSIBLE_FIELD_NUMBER: _ClassVar[int]
    weight: int
    latency: CpuOverlay.Latency
    pinning: CpuOverlay.Pinning
    bind: CpuOverlay.Bind
    burst: str
    idle: bool
    core_sched: bool
    core_expeller: bool
    suppressible: bool
    def __init__(self, weight: _Optional[int] = ..., latency: _Optional[_Union[CpuOverlay.Latency, str]] = ..., pinning: _Optional[_Union[CpuOverlay.Pinning, str]] = ..., bind: _Optional[_Union[CpuOverlay.Bind, str]] = ..., burst: _Optional[str] = ..., idle: _Optional[bool] = ..., core_sched: _Optional[bool] = ..., core_expeller: _Optional[bool] = ..., suppressible: _Optional[bool] = ...) -> None: ...

class MemoryOverlay(_message.Message):
    __slots__ = ("min_percent", "low_percent", "throttling_percent", "oom_priority", "oom_group", "reclaim", "watermark_percent", "watermark_scale", "watermark_adjust", "page_cache_limit", "page_cache_sync", "kernel_priority", "kernel_priority_oom")
    MIN_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LOW_PERCENT_FIELD_NUMBER: _ClassVar[int]
    THROTTLING_PERCENT_FIELD_NUMBER: _ClassVar[int]
    OOM_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    OOM_GROUP_FIELD_NUMBER: _ClassVar[int]
    RECLAIM_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_PERCENT_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_SCALE_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_ADJUST_FIELD_NUMBER: _ClassVar[int]
    PAGE_CACHE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PAGE_CACHE_SYNC_FIELD_NUMBER: _ClassVar[int]
    KERNEL_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    KERNEL_PRIORITY_OOM_FIELD_NUMBER: _ClassVar[int]
    min_percent: int
    low_percent: int
    throttling_percent: int
    oom_priority: int
    oom_group: bool
    reclaim: ReclaimSection
    watermark_percent: int
    watermark_scale: int
    watermark_adjust: int
    page_cache_limit: str
    page_cache_sync: bool
    kernel_priority: int
    kernel_priority_oom: bool
    def __init__(self, min_percent: _Optional[int] = ..., low_percent: _Optional[int] = ..., throttling_percent: _Optional[int] = ..., oom_priority: _Optional[int] = ..., oom_group: _Optional[bool] = ..., reclaim: _Optional[_Union[ReclaimSection, _Mapping]] = ..., watermark_percent: _Optional[int] = ..., watermark_scale: _Optional[int] = ..., watermark_adjust: _Optional[int] = ..., page_cache_limit: _Optional[str] = ..., page_cache_sync: _Optional[bool] = ..., kernel_priority: _Optional[int] = ..., kernel_priority_oom: _Optional[bool] = ...) -> None: ...

class MemoryEviction(_message.Message):
    __slots__ = ("threshold_percent", "lower_percent")
    THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LOWER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    threshold_percent: int
    lower_percent: int
    def __init__(self, threshold_percent: _Optional[int] = ..., lower_percent: _Optional[int] = ...) -> None: ...

class CpuEviction(_message.Message):
    __slots__ = ("threshold_percent", "lower_percent", "satisfaction_lower_percent", "satisfaction_upper_percent", "usage_percent", "window", "policy")
    class Policy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        POLICY_UNSPECIFIED: _ClassVar[CpuEviction.Policy]
        POLICY_ALLOCATABLE: _ClassVar[CpuEviction.Policy]
        POLICY_REAL_LIMIT: _ClassVar[CpuEviction.Policy]
    POLICY_UNSPECIFIED: CpuEviction.Policy
    POLICY_ALLOCATABLE: CpuEviction.Policy
    POLICY_REAL_LIMIT: CpuEviction.Policy
    THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    LOWER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    SATISFACTION_LOWER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    SATISFACTION_UPPER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    USAGE_PERCENT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    threshold_percent: int
    lower_percent: int
    satisfaction_lower_percent: int
    satisfaction_upper_percent: int
    usage_percent: int
    window: str
    policy: CpuEviction.Policy
    def __init__(self, threshold_percent: _Optional[int] = ..., lower_percent: _Optional[int] = ..., satisfaction_lower_percent: _Optional[int] = ..., satisfaction_upper_percent: _Optional[int] = ..., usage_percent: _Optional[int] = ..., window: _Optional[str] = ..., policy: _Optional[_Union[CpuEviction.Policy, str]] = ...) -> None: ...

class AllocatableEviction(_message.Message):
    __slots__ = ("cpu_threshold_percent", "cpu_lower_percent", "memory_threshold_percent", "memory_lower_percent", "priority_threshold")
    CPU_THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    CPU_LOWER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LOWER_PERCENT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    cpu_threshold_percent: int
    cpu_lower_percent: int
    memory_threshold_percent: int
    memory_lower_percent: int
    priority_threshold: int
    def __init__(self, cpu_threshold_percent: _Optional[int] = ..., cpu_lower_percent: _Optional[int] = ..., memory_threshold_percent: _Optional[int] = ..., memory_lower_percent: _Optional[int] = ..., priority_threshold: _Optional[int] = ...) -> None: ...

class LawSection(_message.Message):
    __slots__ = ("threshold_percent", "by", "batch_percent", "mid_percent", "mid_unallocated_percent", "mid_static_percent", "safety_percent", "reserved")
    class By(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BY_UNSPECIFIED: _ClassVar[LawSection.By]
        BY_MAX_USAGE_REQUEST: _ClassVar[LawSection.By]
        BY_REQUEST: _ClassVar[LawSection.By]
        BY_USAGE: _ClassVar[LawSection.By]
    BY_UNSPECIFIED: LawSection.By
    BY_MAX_USAGE_REQUEST: LawSection.By
    BY_REQUEST: LawSection.By
    BY_USAGE: LawSection.By
    THRESHOLD_PERCENT_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    BATCH_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MID_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MID_UNALLOCATED_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MID_STATIC_PERCENT_FIELD_NUMBER: _ClassVar[int]
    SAFETY_PERCENT_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    threshold_percent: int
    by: LawSection.By
    batch_percent: int
    mid_percent: int
    mid_unallocated_percent: int
    mid_static_percent: int
    safety_percent: int
    reserved: str
    def __init__(self, threshold_percent: _Optional[int] = ..., by: _Optional[_Union[LawSection.By, str]] = ..., batch_percent: _Optional[int] = ..., mid_percent: _Optional[int] = ..., mid_unallocated_percent: _Optional[int] = ..., mid_static_percent: _Optional[int] = ..., safety_percent: _Optional[int] = ..., reserved: _Optional[str] = ...) -> None: ...

class LinkOverlay(_message.Message):
    __slots__ = ("managed", "egress", "ingress", "take_over")
    MANAGED_FIELD_NUMBER: _ClassVar[int]
    EGRESS_FIELD_NUMBER: _ClassVar[int]
    INGRESS_FIELD_NUMBER: _ClassVar[int]
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    managed: bool
    egress: str
    ingress: str
    take_over: bool
    def __init__(self, managed: _Optional[bool] = ..., egress: _Optional[str] = ..., ingress: _Optional[str] = ..., take_over: _Optional[bool] = ...) -> None: ...

class DiskOverlay(_message.Message):
    __slots__ = ("managed", "read_bps", "write_bps", "read_iops", "write_iops")
    MANAGED_FIELD_NUMBER: _ClassVar[int]
    READ_BPS_FIELD_NUMBER: _ClassVar[int]
    WRITE_BPS_FIELD_NUMBER: _ClassVar[int]
    READ_IOPS_FIELD_NUMBER: _ClassVar[int]
    WRITE_IOPS_FIELD_NUMBER: _ClassVar[int]
    managed: bool
    read_bps: str
    write_bps: str
    read_iops: int
    write_iops: int
    def __init__(self, managed: _Optional[bool] = ..., read_bps: _Optional[str] = ..., write_bps: _Optional[str] = ..., read_iops: _Optional[int] = ..., write_iops: _Optional[int] = ...) -> None: ...

class TopologyReport(_message.Message):
    __slots__ = ("threads", "cores", "sibling_step", "sockets", "numa_nodes", "l3_caches")
    THREADS_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    SIBLING_STEP_FIELD_NUMBER: _ClassVar[int]
    SOCKETS_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODES_FIELD_NUMBER: _ClassVar[int]
    L3_CACHES_FIELD_NUMBER: _ClassVar[int]
    threads: int
    cores: int
    sibling_step: int
    sockets: _containers.RepeatedCompositeFieldContainer[CpuGroup]
    numa_nodes: _containers.RepeatedCompositeFieldContainer[CpuGroup]
    l3_caches: _containers.RepeatedCompositeFieldContainer[CpuGroup]
    def __init__(self, threads: _Optional[int] = ..., cores: _Optional[int] = ..., sibling_step: _Optional[int] = ..., sockets: _Optional[_Iterable[_Union[CpuGroup, _Mapping]]] = ..., numa_nodes: _Optional[_Iterable[_Union[CpuGroup, _Mapping]]] = ..., l3_caches: _Optional[_Iterable[_Union[CpuGroup, _Mapping]]] = ...) -> None: ...

class Capability(_message.Message):
    __slots__ = ("feature", "ok", "via", "needs", "instead")
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    INSTEAD_FIELD_NUMBER: _ClassVar[int]
    feature: str
    ok: bool
    via: str
    needs: str
    instead: str
    def __init__(self, feature: _Optional[str] = ..., ok: _Optional[bool] = ..., via: _Optional[str] = ..., needs: _Optional[str] = ..., instead: _Optional[str] = ...) -> None: ...

class ReservationReport(_message.Message):
    __slots__ = ("source", "generation", "workloads", "units", "used", "charged", "amount", "unprotected", "unprotected_workloads", "refused")
    class AmountEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CHARGED_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    UNPROTECTED_FIELD_NUMBER: _ClassVar[int]
    UNPROTECTED_WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    source: str
    generation: int
    workloads: int
    units: int
    used: int
    charged: int
    amount: _containers.ScalarMap[str, str]
    unprotected: int
    unprotected_workloads: _containers.RepeatedScalarFieldContainer[str]
    refused: str
    def __init__(self, source: _Optional[str] = ..., generation: _Optional[int] = ..., workloads: _Optional[int] = ..., units: _Optional[int] = ..., used: _Optional[int] = ..., charged: _Optional[int] = ..., amount: _Optional[_Mapping[str, str]] = ..., unprotected: _Optional[int] = ..., unprotected_workloads: _Optional[_Iterable[str]] = ..., refused: _Optional[str] = ...) -> None: ...

class AppliedChange(_message.Message):
    __slots__ = ("source", "generation", "trace", "received", "applied", "writes")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    source: str
    generation: int
    trace: str
    received: _timestamp_pb2.Timestamp
    applied: _timestamp_pb2.Timestamp
    writes: int
    def __init__(self, source: _Optional[str] = ..., generation: _Optional[int] = ..., trace: _Optional[str] = ..., received: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., applied: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., writes: _Optional[int] = ...) -> None: ...

class EvictionRequest(_message.Message):
    __slots__ = ("namespace", "name", "uid", "why", "since")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    why: str
    since: _timestamp_pb2.Timestamp
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., why: _Optional[str] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TierTotal(_message.Message):
    __slots__ = ("workloads", "promised", "effective", "used")
    class PromisedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EffectiveEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UsedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    workloads: int
    promised: _containers.ScalarMap[str, str]
    effective: _containers.ScalarMap[str, str]
    used: _containers.ScalarMap[str, str]
    def __init__(self, workloads: _Optional[int] = ..., promised: _Optional[_Mapping[str, str]] = ..., effective: _Optional[_Mapping[str, str]] = ..., used: _Optional[_Mapping[str, str]] = ...) -> None: ...

class InterferenceReport(_message.Message):
    __slots__ = ("victim", "antagonist", "resource", "suffering", "evidence", "correlation", "samples", "action")
    VICTIM_FIELD_NUMBER: _ClassVar[int]
    ANTAGONIST_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SUFFERING_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    victim: str
    antagonist: str
    resource: str
    suffering: str
    evidence: str
    correlation: float
    samples: int
    action: str
    def __init__(self, victim: _Optional[str] = ..., antagonist: _Optional[str] = ..., resource: _Optional[str] = ..., suffering: _Optional[str] = ..., evidence: _Optional[str] = ..., correlation: _Optional[float] = ..., samples: _Optional[int] = ..., action: _Optional[str] = ...) -> None: ...

class CpuGroup(_message.Message):
    __slots__ = ("id", "cpus")
    ID_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    id: int
    cpus: str
    def __init__(self, id: _Optional[int] = ..., cpus: _Optional[str] = ...) -> None: ...

class StringMap(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class StringMapMap(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: StringMap
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[StringMap, _Mapping]] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.MessageMap[str, StringMap]
    def __init__(self, values: _Optional[_Mapping[str, StringMap]] = ...) -> None: ...
