"""A pod as the API server or a kubelet tells of it, and what it asks for as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from fractions import Fraction
from sys import intern
from typing import Final

from msgspec import field
from msgspec.structs import replace

from j10ce.model.kube.native import Amounts, Native, NativeCondition, NativeObject, Pool, slim
from j10ce.model.quantity import Quantity

POD_LEVEL: Final = ("cpu", "memory", "hugepages-")  # beginnings of what a pod may ask for as a whole
ENDED: Final = ("Succeeded", "Failed")
KEPT_CONDITIONS: Final = ("PodResizePending", "PodResizeInProgress")


class PodResources(Native, frozen=True, kw_only=True):
    """What a container or a whole pod asks for."""

    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)


class Container(Native, frozen=True, kw_only=True):
    name: str
    resources: PodResources = PodResources()
    restart_policy: str = ""  # Always, among the init containers: a sidecar, which runs along with the others

    @property
    def sidecar(self) -> bool:
        return self.restart_policy == "Always"


class PodSpec(Native, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    host_network: bool = False
    node_selector: dict[str, str] = field(default_factory=dict)
    overhead: Amounts = field(default_factory=dict)
    resources: PodResources = PodResources()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class Moment(Native, frozen=True, kw_only=True):
    started_at: datetime | None = None


class ContainerState(Native, frozen=True, kw_only=True):
    """At most one of them; neither: it waits."""

    running: Moment | None = None
    terminated: Moment | None = None


class ContainerStatus(Native, frozen=True, kw_only=True):
    name: str
    container_id: str = field(default="", name="containerID")  # containerd://<64 hex digits>; empty until it is made
    state: ContainerState = ContainerState()
    resources: PodResources | None = None  # in force; they lag behind the spec while it is resized
    allocated_resources: Amounts = field(default_factory=dict)


class PodIp(Native, frozen=True, kw_only=True):
    ip: str = ""


class PodStatus(Native, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    resize: str = ""  # Proposed, InProgress, Deferred, Infeasible; before v1.33
    conditions: tuple[NativeCondition, ...] = ()  # PodResizePending and PodResizeInProgress from v1.33 on
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ips: tuple[PodIp, ...] = field(default=(), name="podIPs")


class Pod(NativeObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ended(self) -> bool:
        """It holds nothing any more."""
        return self.status.phase in ENDED


def slim_pod(pod: Pod, pool: Pool) -> Pod:
    """What matters away from its node: not which containers run there, nor that it is well."""
    spec, status = pod.spec, pod.status
    conditions = tuple(c for c in status.conditions if c.type in KEPT_CONDITIONS)
    lean = replace(status, conditions=conditions, container_statuses=(), init_container_statuses=(), pod_ips=())
    kept = replace(
        spec,
        node_name=intern(spec.node_name),
        scheduler_name=intern(spec.scheduler_name),
        priority_class_name=intern(spec.priority_class_name),
        node_selector=pool.words(spec.node_selector),
        containers=_shared(spec.containers, pool),
        init_containers=_shared(spec.init_containers, pool),
    )
    return slim(replace(pod, spec=kept, status=pool.one(lean, lean)), pool)


def _shared(containers: tuple[Container, ...], pool: Pool) -> tuple[Container, ...]:
    return pool.one(
        containers,
        tuple(
            (c.name, c.restart_policy, *c.resources.requests.items(), "limits", *c.resources.limits.items())
            for c in containers
        ),
    )


def requests(pod: Pod) -> Amounts:
    """What the scheduler charges a node for the pod."""
    return _plus(_total(pod.spec, _requests), pod.spec.overhead)


def limits(pod: Pod) -> Amounts:
    """What the pod may use at most, as a kubelet reckons: a resource that some container has no limit of is absent."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    bounded = set.intersection(*(set(c.resources.limits) for c in containers)) if containers else set()
    bounded |= _as_a_whole(pod.spec.resources.limits).keys()
    total = _plus(_total(pod.spec, lambda resources: resources.limits), pod.spec.overhead)
    return {name: amount for name, amount in total.items() if name in bounded}


def _requests(resources: PodResources) -> Amounts:
    """A limit without a request is a request, as the API server makes of it; a kubelet's static pod may lack that."""
    return {**resources.limits, **resources.requests}


def _total(spec: PodSpec, of: Callable[[PodResources], Amounts]) -> Amounts:
    """Containers and sidecars run together; an init container runs with the sidecars before it, and alone otherwise."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        own = of(container.resources)
        if container.sidecar:
            sidecars = _plus(sidecars, own)
        peak = most(peak, sidecars if container.sidecar else _plus(sidecars, own))
    running = sidecars
    for container in spec.containers:
        running = _plus(running, of(container.resources))
    return most(peak, running) | _as_a_whole(of(spec.resources))


def _as_a_whole(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name.startswith(POD_LEVEL)}


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return {name: Quantity(sum(_both(one, other, name))) for name in one | other} if one and other else one or other


def most(one: Amounts, other: Amounts) -> Amounts:
    """By name, the larger of the two."""
    return {name: Quantity(max(_both(one, other, name))) for name in one | other} if one and other else one or other


def _both(one: Amounts, other: Amounts, name: str) -> Iterable[Fraction]:
    return (amounts[name].amount if name in amounts else Fraction(0) for amounts in (one, other))
