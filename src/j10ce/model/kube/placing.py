"""The parts of a pod that say where it wants to run, as Kubernetes writes them."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import field

from j10ce.model.kube.native import Native

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class NativeToleration(Native, frozen=True, kw_only=True):
    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = ""
    value: str = ""
    effect: str = ""


class NativeExpression(Native, frozen=True, kw_only=True):
    key: str = ""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class NativeSelector(Native, frozen=True, kw_only=True):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[NativeExpression, ...] = ()


class NativeNodeTerm(Native, frozen=True, kw_only=True):
    match_expressions: tuple[NativeExpression, ...] = ()
    match_fields: tuple[NativeExpression, ...] = ()


class NativeNodeTerms(Native, frozen=True, kw_only=True):
    node_selector_terms: tuple[NativeNodeTerm, ...] = ()


class NativePreferredNode(Native, frozen=True, kw_only=True):
    weight: int = 0
    preference: NativeNodeTerm = NativeNodeTerm()


class NativeNodeAffinity(Native, frozen=True, kw_only=True):
    required: NativeNodeTerms | None = field(default=None, name=REQUIRED)
    preferred: tuple[NativePreferredNode, ...] = field(default=(), name=PREFERRED)


class NativePodTerm(Native, frozen=True, kw_only=True):
    label_selector: NativeSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: NativeSelector | None = None


class NativePreferredPods(Native, frozen=True, kw_only=True):
    weight: int = 0
    pod_affinity_term: NativePodTerm = NativePodTerm()


class NativePodAffinity(Native, frozen=True, kw_only=True):
    required: tuple[NativePodTerm, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[NativePreferredPods, ...] = field(default=(), name=PREFERRED)


class NativeAffinity(Native, frozen=True, kw_only=True):
    node_affinity: NativeNodeAffinity = NativeNodeAffinity()
    pod_affinity: NativePodAffinity = NativePodAffinity()
    pod_anti_affinity: NativePodAffinity = NativePodAffinity()


class NativeSpread(Native, frozen=True, kw_only=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: NativeSelector | None = None
    min_domains: int = 1
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class EphemeralVolume(Native, frozen=True, kw_only=True):
    pass


class ClaimSource(Native, frozen=True, kw_only=True):
    claim_name: str = ""


class NativeVolume(Native, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralVolume | None = None


class PodResourceClaim(Native, frozen=True, kw_only=True):
    name: str = ""
