"""The sections of a KubeSchedulerConfiguration, versions v1 and v1beta1 to v1beta3: as strict as kube-scheduler is."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSIONS: Final = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta3", "v1beta2", "v1beta1"))
KIND: Final = "KubeSchedulerConfiguration"
STOCK: Final = "default-scheduler"


class EnabledPlugin(Strict, frozen=True, kw_only=True):
    name: str
    weight: int = 0  # its own, which for most is 1


class DisabledPlugin(Strict, frozen=True, kw_only=True):
    name: str  # "*": all that are there by default
    weight: int = 0


class PluginSet(Strict, frozen=True, kw_only=True):
    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


class PluginsSection(Strict, frozen=True, kw_only=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()


class PluginArguments(Strict, frozen=True, kw_only=True):
    name: str
    args: dict[str, Any] = field(default_factory=dict)


class ProfileSection(Strict, frozen=True, kw_only=True):
    scheduler_name: str = STOCK
    percentage_of_nodes_to_score: int | None = None  # every node is considered, whatever it says
    plugins: PluginsSection = PluginsSection()
    plugin_config: tuple[PluginArguments, ...] = ()


class LeaderElectionSection(Strict, frozen=True, kw_only=True):
    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = "leases"
    resource_name: str = ""
    resource_namespace: str = ""


class ClientSection(Strict, frozen=True, kw_only=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 50.0
    burst: int = 100


class SchedulerConfiguration(Strict, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    parallelism: int = 16
    leader_election: LeaderElectionSection = LeaderElectionSection()
    client_connection: ClientSection = ClientSection()
    healthz_bind_address: str = ""
    metrics_bind_address: str = ""
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    delay_cache_until_active: bool = False
    profiles: tuple[ProfileSection, ...] = (ProfileSection(),)
    extenders: tuple[dict[str, Any], ...] = ()
