"""A pod as a workload, with its containers as parts. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from j10ce.model.kinds import NAMESPACE_NAME_LABEL, WORKLOAD_LABEL
from j10ce.model.kube.native import Amounts
from j10ce.model.kube.pod import Container, ContainerStatus, Pod, PodResources, limits, requests
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.workload import BANDS, Ceiling, Handle, Overrides, Part, Reclaimable, Workload, heeded, unheeded

SYSTEM_NAMESPACE: Final = "j10ce-system"
CRITICAL: Final = ("system-node-critical", "system-cluster-critical")
MIRROR: Final = "kubernetes.io/config.mirror"  # on the API server's copy of a static pod: the uid that its cgroup has
SOURCE: Final = "kubernetes.io/config.source"
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"  # conditions from v1.33 on
WAITING: Final = ("Deferred", "Infeasible")  # what a kubelet calls a resize that it does not begin
DOMAINS: Final = ("kubernetes.io", "j10ce.io")  # of batch-cpu and its like: Koordinator's, and ours
MOST_EXTENDED: Final = 1 << 53  # what every client can read; no machine has it
LEAST_SHARES: Final = 2  # as a kubelet reckons: fewer are none
LEAST_MILLICORES: Final = 10  # of a limit: the kernel's least quota


def workload(pod: Pod, namespace_labels: Mapping[str, str], handle: Handle, inside: Mapping[str, Handle]) -> Workload:
    """`handle`: the pod's own cgroup. `inside`: those of its containers, by the runtime's id."""
    meta, asked, pod = pod.metadata, resizing(pod), in_force(pod)
    created = meta.creation_timestamp
    return replace(
        member(pod, namespace_labels),
        requests=_resources(requests(pod)),
        limits=_ceiling(limits(pod)),
        handle=handle,
        parts=tuple(_parts(pod, inside)),
        since=created.timestamp() if created else 0.0,
        annotations=heeded(meta.annotations),
        priority=pod.spec.priority,
        reclaimable=_reclaimable(requests(pod), limits(pod)),
        overrides=Overrides(notes=unheeded(meta.annotations)),
        leaving=meta.deletion_timestamp is not None,
        resizing=asked,
        own_network=not pod.spec.host_network,
        addresses=() if pod.spec.host_network else tuple(each.ip for each in pod.status.pod_ips),
    )


def member(pod: Pod, namespace_labels: Mapping[str, str]) -> Workload:
    """Who it is: all that selectors and profiles look at."""
    meta = pod.metadata
    return Workload(
        namespace=meta.namespace,
        name=meta.name,
        labels={**meta.labels, WORKLOAD_LABEL: meta.name},
        namespace_labels={NAMESPACE_NAME_LABEL: meta.namespace, **namespace_labels},
        critical=critical(pod),
    )


def cgroup_uid(pod: Pod) -> str:
    """The uid in the name of its cgroup: a static pod has the kubelet's, not that of its mirror."""
    return pod.metadata.annotations.get(MIRROR) or pod.metadata.uid


def critical(pod: Pod) -> bool:
    """Never below tier system: static pods, what the cluster lives on, and our own."""
    annotations = pod.metadata.annotations
    static = MIRROR in annotations or annotations.get(SOURCE, "api") != "api"
    return static or pod.spec.priority_class_name in CRITICAL or pod.metadata.namespace == SYSTEM_NAMESPACE


def running(pod: Pod) -> dict[str, str]:
    """The runtime's id of every container that has started and not ended, by its name."""
    return {
        status.name: status.container_id.rpartition("://")[2]
        for status in _statuses(pod)
        if status.container_id and status.state.running is not None
    }


def resizing(pod: Pod) -> bool:
    """Whether the kubelet has the pod's CPU time to write: what it asks for and what it runs with differ.

    A resize that is deferred or infeasible is not written, and may stand for ever.
    """
    if pod.status.resize == "InProgress" or _is_true(pod, IN_PROGRESS):
        return True
    waiting = pod.status.resize in WAITING or _is_true(pod, PENDING)
    present = {status.name: status for status in _statuses(pod) if status.state.running is not None}
    pairs = [(c, present[c.name]) for c in (*pod.spec.containers, *pod.spec.init_containers) if c.name in present]
    return any(_moves(c, status, waiting) for c, status in pairs)


def _moves(container: Container, status: ContainerStatus, waiting: bool) -> bool:
    if status.resources is None:  # before v1.27, or the kubelet has not reported it yet
        return False
    allocated = status.allocated_resources
    wanted = container.resources if not waiting else PodResources(requests=allocated, limits=status.resources.limits)
    return bool(wanted.requests or wanted.limits) and _cpu_time(wanted) != _cpu_time(status.resources)


def _cpu_time(resources: PodResources) -> tuple[int, int]:
    """Shares and limit as a kubelet writes them: it reads them back from there."""
    asked, most = _resources(resources.requests).cpu, _resources(resources.limits).cpu
    return max(LEAST_SHARES, asked * 1024 // 1000), most and max(LEAST_MILLICORES, most)


def _is_true(pod: Pod, condition: str) -> bool:
    return any(c.type == condition and c.status == "True" for c in pod.status.conditions)


def in_force(pod: Pod) -> Pod:
    """While a pod is resized, the kubelet has its containers run with what their status says, not with the spec."""
    if not pod.status.resize and not _is_true(pod, PENDING) and not _is_true(pod, IN_PROGRESS):
        return pod
    statuses = {status.name: status for status in _statuses(pod)}
    containers, inits = (
        tuple(_resized(c, statuses.get(c.name)) for c in group)
        for group in (pod.spec.containers, pod.spec.init_containers)
    )
    return replace(pod, spec=replace(pod.spec, containers=containers, init_containers=inits))


def in_use(pod: Pod) -> list[tuple[str, PodResources | None, Amounts]]:
    """What its containers run with by the kubelet's word: once it moves, the kubelet has written their cgroups."""
    return [(status.name, status.resources, status.allocated_resources) for status in _statuses(pod)]


def _resized(container: Container, status: ContainerStatus | None) -> Container:
    if status is None or not (status.resources or status.allocated_resources):
        return container
    present = status.resources or container.resources
    allocated = status.allocated_resources or present.requests
    return replace(container, resources=PodResources(requests=allocated, limits=present.limits))


def _statuses(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.container_statuses
    yield from pod.status.init_container_statuses


def _parts(pod: Pod, inside: Mapping[str, Handle]) -> Iterator[Part]:
    """Init containers too, while they run: they have the pod's floor before the others do."""
    ids = running(pod)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        handle = inside.get(ids.get(container.name, ""))
        if handle is not None:
            asked = {**container.resources.limits, **container.resources.requests}
            most = container.resources.limits
            yield Part(container.name, handle, _resources(asked), _ceiling(most), _reclaimable(asked, most))


def _resources(amounts: Amounts) -> Resources:
    cpu, memory = amounts.get("cpu"), amounts.get("memory")
    return Resources(cpu.millicores() if cpu else Millicores(0), memory.bytes() if memory else Bytes(0))


def _ceiling(amounts: Amounts) -> Ceiling:
    """A limit of zero is none, to a kubelet too."""
    cpu, memory = _resources(amounts)[:2]
    return Ceiling(cpu or math.inf, memory or math.inf)


def _reclaimable(asked: Amounts, most: Amounts) -> dict[str, Reclaimable]:
    """By band, of those that something is asked of."""
    bands = {band: Reclaimable(_extended(asked, band), _extended_ceiling(most, band)) for band in BANDS}
    return {band: lent for band, lent in bands.items() if lent != Reclaimable()}


def _extended(amounts: Amounts, band: str) -> Resources:
    """Extended resources are whole numbers: CPU in millicores, memory in bytes. The larger of both spellings counts."""
    cpu, memory = (_most(amounts, f"{band}-{resource}") for resource in ("cpu", "memory"))
    return Resources(Millicores(cpu), Bytes(memory))


def _extended_ceiling(amounts: Amounts, band: str) -> Ceiling:
    cpu, memory = _extended(amounts, band)[:2]
    return Ceiling(cpu or math.inf, memory or math.inf)


def _most(amounts: Amounts, name: str) -> int:
    spelled = (amounts[f"{domain}/{name}"] for domain in DOMAINS if f"{domain}/{name}" in amounts)
    return max((min(MOST_EXTENDED, math.ceil(amount.amount)) for amount in spelled), default=0)
