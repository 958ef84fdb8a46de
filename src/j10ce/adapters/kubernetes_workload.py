"""A pod as a workload, with its containers as parts. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from j10ce.model.kinds import NAMESPACE_NAME_LABEL
from j10ce.model.native import Amounts
from j10ce.model.pod import Container, ContainerStatus, Pod, PodResources, limits, requests
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.workload import Ceiling, Handle, Part, Workload

SYSTEM_NAMESPACE: Final = "j10ce-system"
CRITICAL: Final = ("system-node-critical", "system-cluster-critical")
MIRROR: Final = "kubernetes.io/config.mirror"  # on the API server's copy of a static pod: the uid that its cgroup has
SOURCE: Final = "kubernetes.io/config.source"
RESIZING: Final = ("PodResizePending", "PodResizeInProgress")


def workload(pod: Pod, namespace_labels: Mapping[str, str], handle: Handle, found: Mapping[str, Handle]) -> Workload:
    """`handle`: the pod's own cgroup. `found`: those of its containers, by the runtime's id."""
    meta, pod = pod.metadata, in_force(pod)
    created = meta.creation_timestamp
    return Workload(
        namespace=meta.namespace,
        name=meta.name,
        labels=meta.labels,
        namespace_labels={NAMESPACE_NAME_LABEL: meta.namespace, **namespace_labels},
        requests=_resources(requests(pod)),
        limits=_ceiling(limits(pod)),
        handle=handle,
        parts=tuple(_parts(pod, found)),
        since=created.timestamp() if created else 0.0,
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


def in_force(pod: Pod) -> Pod:
    """While a pod is resized, the kubelet has its containers run with what their status tells, not with the spec."""
    resizing = bool(pod.status.resize) or any(c.type in RESIZING and c.status == "True" for c in pod.status.conditions)
    if not resizing:
        return pod
    told = {status.name: status for status in _statuses(pod)}
    containers, inits = (
        tuple(_resized(c, told.get(c.name)) for c in group) for group in (pod.spec.containers, pod.spec.init_containers)
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


def _parts(pod: Pod, found: Mapping[str, Handle]) -> Iterator[Part]:
    """Init containers too, while they run: they have the pod's floor before the others do."""
    ids = running(pod)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        handle = found.get(ids.get(container.name, ""))
        if handle is not None:
            asked = {**container.resources.limits, **container.resources.requests}
            yield Part(container.name, handle, _resources(asked), _ceiling(container.resources.limits))


def _resources(amounts: Amounts) -> Resources:
    cpu, memory = amounts.get("cpu"), amounts.get("memory")
    return Resources(cpu.millicores() if cpu else Millicores(0), memory.bytes() if memory else Bytes(0))


def _ceiling(amounts: Amounts) -> Ceiling:
    """A limit of zero is none, to a kubelet too."""
    cpu, memory = _resources(amounts)[:2]
    return Ceiling(cpu or math.inf, memory or math.inf)
