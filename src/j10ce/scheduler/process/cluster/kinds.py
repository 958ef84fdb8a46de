"""Which kinds of an API server a scheduler follows, and what it keeps of each: the facts, and nothing of the object.

Servers of 1.20 to 1.36 differ in versions, and few have the kinds of scheduling.x-k8s.io; what one does not serve is
not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from j10ce.errors import Finding, Invalid
from j10ce.kube.client import KubeClient
from j10ce.kube.resource import Resource, resources
from j10ce.model.kinds import API_VERSION
from j10ce.model.kube.native import Namespace, NativeObject, decode_native
from j10ce.model.kube.surroundings import (
    ElasticQuotaObject,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PodGroup,
    PodOwner,
    Service,
    WideNode,
)
from j10ce.model.kube.wide_pod import WidePod
from j10ce.scheduler.process.cluster import promises
from j10ce.scheduler.reading import others
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader

N = TypeVar("N", bound=NativeObject)
APPS: Final = "apps/v1"
OWNERS: Final = {
    "ReplicaSet": "replicasets",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
}
BUDGETS: Final = ("policy/v1", "policy/v1beta1")  # the latter before v1.21
GANGS: Final = "scheduling.x-k8s.io/v1alpha1"
FIRST: Final = (*OWNERS, "Job", "Namespace")  # before pods are read: who owns them says what they are


class HeldMeta(NamedTuple):
    namespace: str
    name: str
    resource_version: str


class Held(NamedTuple):
    """As much of an object as a mirror looks at, and what the scheduler knows of it."""

    kind: str
    metadata: HeldMeta
    fact: Any


class _Version(Struct, rename="camel"):
    group_version: str


class _Group(Struct):
    versions: list[_Version]


class _Groups(Struct):
    groups: list[_Group]


async def served(client: KubeClient) -> Collection[str]:
    """Group versions of the server, such as policy/v1."""
    groups = msgspec.json.decode(await client.get("/apis"), type=_Groups)
    return frozenset(version.group_version for group in groups.groups for version in group.versions)


def kinds(versions: Collection[str], owners: Owners, pods: PodReader) -> dict[str, Resource]:
    """In the order in which they are to be read."""
    core = "/api/v1"
    made = [_owner(kind, f"/apis/{APPS}", plural, owners) for kind, plural in OWNERS.items()]
    made.append(_owner("Job", "/apis/batch/v1", "jobs", owners))
    made.append(_kind("Namespace", core, "namespaces", Namespace, others.namespace_facts, namespaced=False))
    made.append(_kind("Node", core, "nodes", WideNode, others.node_facts, namespaced=False))
    made.append(
        _kind("PersistentVolume", core, "persistentvolumes", PersistentVolume, others.volume_facts, namespaced=False)
    )
    made.append(
        _kind("PersistentVolumeClaim", core, "persistentvolumeclaims", PersistentVolumeClaim, others.claim_facts)
    )
    made.append(_kind("Service", core, "services", Service, others.service_facts))
    if budgets := next((version for version in BUDGETS if version in versions), ""):
        plural = "poddisruptionbudgets"
        made.append(_kind("PodDisruptionBudget", f"/apis/{budgets}", plural, PodDisruptionBudget, others.budget_facts))
    if GANGS in versions:
        made.append(_kind("PodGroup", f"/apis/{GANGS}", "podgroups", PodGroup, others.group_facts))
        made.append(_kind("ElasticQuota", f"/apis/{GANGS}", "elasticquotas", ElasticQuotaObject, others.quota_facts))
    if API_VERSION in versions:
        ours = resources()
        made += [ours[kind] for kind in promises.KINDS]
    made.append(Resource("Pod", core, "pods", partial(_pod, pods), namespaced=True))
    return {resource.kind: resource for resource in made}


def _kind(
    kind: str, prefix: str, plural: str, into: type[N], facts: Callable[[N], Any], *, namespaced: bool = True
) -> Resource:
    def read(text: bytes) -> Held:
        native = decode_native(text, into)
        return _held(kind, native, facts(native))

    return Resource(kind, prefix, plural, read, namespaced=namespaced)


def _owner(kind: str, prefix: str, plural: str, owners: Owners) -> Resource:
    """Its facts are known to `owners` from the moment that it is read: pods may be read next."""
    return _kind(kind, prefix, plural, PodOwner, partial(owners.put, kind))


def _pod(reader: PodReader, text: bytes) -> Held:
    native = msgspec.json.decode(text, type=WidePod)
    meta = native.metadata
    if not meta.name or not meta.uid:
        raise Invalid([Finding("metadata", None, "a pod without a name or a uid")], "Pod")
    return _held("Pod", native, reader.facts(native))


def _held(kind: str, native: NativeObject, fact: Any) -> Held:
    meta = native.metadata
    return Held(kind, HeldMeta(meta.namespace, meta.name, meta.resource_version), fact)


def missing(versions: Collection[str]) -> Mapping[str, str]:
    """What this server has not, by what it would be good for."""
    lacking = {} if GANGS in versions else {"PodGroup, ElasticQuota": f"{GANGS} is not served"}
    if API_VERSION not in versions:
        lacking[", ".join(promises.KINDS)] = f"{API_VERSION} is not served"
    return lacking | ({} if any(b in versions for b in BUDGETS) else {"PodDisruptionBudget": "policy is not served"})
