"""What only a real API server shows: parts that others own, pages, server-side apply, its own kinds, rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.errors import Compacted, Conflict, Denied, Invalid, NotFound, StoreError, Unsupported
from j10ce.kube.access import read_access
from j10ce.model.kinds import Meta, MinimalReservationPolicy, NodeQoS, Object, Owner, PolicyRevision
from j10ce.model.kube.native import Namespace, Node
from j10ce.store.kube.store import KubeStore
from j10ce.store.mirror import Mirror
from j10ce.store.store import ABSENT
from j10ce.testing.build import profile, reservation
from j10ce.testing.conformance_store import KIND, judged, labelled, soon, with_cpu
from tests.kube.store.opening import OURS, opened
from tests.lab.kube.cluster import Cluster

pytestmark = pytest.mark.kube
POLICY = f"{OURS}/namespaces/default/minimalreservationpolicies/db"
MERGE = "application/merge-patch+json"


def raw(cluster: Cluster) -> Any:
    return cluster.call("GET", POLICY)


async def test_a_write_leaves_finalizers_and_foreign_owners_alone(store: KubeStore, empty: Cluster) -> None:
    made = await store.put(reservation("db", cpu="1"))
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "0", "blockOwnerDeletion": True}
    meta = {"finalizers": ["example.com/hold"], "ownerReferences": [owner]}
    empty.call("PATCH", POLICY, {"metadata": meta}, content=MERGE)
    seen = await store.get(KIND, "default", "db")
    await store.put(with_cpu(seen, "2"), expect=seen.metadata.resource_version)
    await store.put(judged(made, "fits"), part="status")
    assert {key: raw(empty)["metadata"][key] for key in meta} == meta
    gone = await store.delete(KIND, "default", "db")
    assert gone.metadata.uid == made.metadata.uid
    assert (await store.get(KIND, "default", "db")).metadata.uid == made.metadata.uid  # until its finalizer is done
    empty.call("PATCH", POLICY, {"metadata": {"finalizers": None}}, content=MERGE)
    with pytest.raises(NotFound):
        await store.get(KIND, "default", "db")


async def test_labels_that_are_taken_away_are_gone(store: KubeStore, empty: Cluster) -> None:
    made = await store.put(labelled(reservation("db", cpu="1"), app="x", tier="y"))
    await store.put(labelled(made, app="x"))
    assert raw(empty)["metadata"]["labels"] == {"app": "x"}
    bare = await store.put(replace(made, metadata=replace(made.metadata, labels={})))
    assert not bare.metadata.labels
    assert "labels" not in raw(empty)["metadata"]


async def test_a_status_under_a_revision_conflicts_when_stale(store: KubeStore) -> None:
    made = await store.put(reservation("db", cpu="1"))
    stale = made.metadata.resource_version
    seen = await store.put(judged(made, "fits"), expect=stale, part="status")
    assert isinstance(seen, MinimalReservationPolicy)
    with pytest.raises(Conflict):
        await store.put(judged(made, "does not"), expect=stale, part="status")
    assert await store.get(KIND, "default", "db") == seen


@pytest.mark.parametrize("expect", ["0", "", "rubbish", "1"])
async def test_a_revision_that_was_never_given_conflicts(store: KubeStore, expect: str) -> None:
    with pytest.raises(NotFound):
        await store.put(reservation("db", cpu="1"), expect=expect)
    await store.put(reservation("db", cpu="1"))
    with pytest.raises(Conflict):
        await store.put(reservation("db", cpu="2"), expect=expect)
    with pytest.raises(Conflict):
        await store.put(judged(reservation("db"), "fits"), expect=ABSENT, part="status")


async def test_a_revision_has_no_status_and_keeps_its_data(store: KubeStore) -> None:
    policy = await store.put(profile("x"))  # or the garbage collector would take its revisions
    owner = Owner(api_version="j10ce.io/v1alpha1", kind="QoSProfile", name="x", uid=policy.metadata.uid)
    meta = Meta(name="x-1", namespace="j10ce-system", owner_references=(owner,))
    wish = PolicyRevision(metadata=meta, revision=1, data={"tier": "reserved", "deep": {"list": [1, 2]}})
    made = await store.put(wish, expect=ABSENT)
    assert isinstance(made, PolicyRevision)
    assert (made.revision, made.data, made.metadata.owner_references) == (1, wish.data, (owner,))
    changed = await store.put(replace(made, data={}), expect=made.metadata.resource_version)
    assert isinstance(changed, PolicyRevision)
    assert changed.data == {}
    with pytest.raises(StoreError, match="no status"):
        await store.put(made, part="status")


async def test_findings_of_the_api_server_come_with_their_places(store: KubeStore) -> None:
    wrong = profile("mine")
    wrong = replace(wrong, spec=replace(wrong.spec, priority=2**60))
    with pytest.raises(Invalid) as refused:
        await store.put(wrong)
    assert [finding.path for finding in refused.value.findings] == ["spec.priority"]


async def test_a_namespace_that_is_missing_is_named(store: KubeStore) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await store.put(reservation("db", namespace="nowhere", cpu="1"))
    assert not (await store.list(KIND, "nowhere")).items


async def test_kinds_that_kubernetes_does_not_keep_are_refused(store: KubeStore) -> None:
    with pytest.raises(Unsupported, match="Credential on Kubernetes"):
        await store.list("Credential")
    with pytest.raises(Unsupported):
        store.watch("Workload", "1")


async def test_pages_are_of_one_instant(store: KubeStore) -> None:
    for n in range(7):
        await store.put(reservation(f"p-{n}", cpu="1"))
    names, revisions = [], set()
    async for revision, page in store.client.pages(f"{OURS}/minimalreservationpolicies", size=2):
        names += [json.loads(bytes(text))["metadata"]["name"] for text in page]
        revisions.add(revision)
        await store.put(reservation(f"p-9{len(names)}", cpu="1"))
    assert names == [f"p-{n}" for n in range(7)]
    assert len(revisions) == 1


async def test_applied_fields_have_an_owner(store: KubeStore, empty: Cluster) -> None:
    await store.put(reservation("db", cpu="1"))
    wish = {"apiVersion": "j10ce.io/v1alpha1", "kind": KIND, "metadata": {"labels": {"ours": "1"}}}
    for _ in range(2):
        await store.client.patch(POLICY, wish, "apply")
    other = {**wish, "metadata": {"labels": {"ours": "2"}}}
    apply = "application/apply-patch+yaml"
    empty.call("PATCH", f"{POLICY}?fieldManager=someone&force=true", other, content=apply)
    with pytest.raises(Conflict, match="someone"):
        await store.client.patch(POLICY, wish, "apply")
    await store.client.patch(POLICY, wish, "apply", force=True)
    assert raw(empty)["metadata"]["labels"] == {"ours": "1"}


async def test_each_event_of_a_mirror_tells_what_was_before(store: KubeStore) -> None:
    changes = Mirror(store, KIND).changes()
    made = await store.put(reservation("db", cpu="1"))
    assert (await soon(anext(changes))).old is None
    changed = await store.put(with_cpu(made, "2"))
    assert (await soon(anext(changes))).old == made
    await store.delete(KIND, "default", "db")
    gone = await soon(anext(changes))
    assert (gone.type, gone.old) == ("DELETED", changed)


async def test_changes_that_the_api_server_has_forgotten_are_compacted(store: KubeStore) -> None:
    with pytest.raises(Compacted):
        await soon(anext(store.watch(KIND, "1")))


async def test_a_hundred_watchers_are_one_watch_of_the_api_server(store: KubeStore, empty: Cluster) -> None:
    since = (await store.list(KIND)).revision
    before = watches(empty)
    waits = [store.watch(KIND, since) for _ in range(100)]
    async with asyncio.TaskGroup() as group:
        heard = [group.create_task(soon(anext(wait))) for wait in waits]
        made = await store.put(reservation("db", cpu="1"))
    assert all(task.result().object == made for task in heard)
    assert watches(empty) - before <= 1


def watches(cluster: Cluster) -> int:
    obj = cluster.call("GET", "/metrics")
    lines = [line for line in obj.splitlines() if 'resource="minimalreservationpolicies"' in line]
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("apiserver_longrunning"))


# -- Kubernetes' own kinds


@pytest.fixture
def pod(empty: Cluster, namespace: str) -> str:
    """The path of one that runs nowhere."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
    body = {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": [container]}}
    empty.wait_for_account(namespace)
    empty.call("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    return f"/api/v1/namespaces/{namespace}/pods/p"


async def test_pods_are_mirrored(store: KubeStore, empty: Cluster, pod: str, namespace: str) -> None:
    followed = Mirror(store, "Pod")
    changes: Any = (event async for event in followed.changes() if event.object.metadata.namespace == namespace)
    seen = await anext(changes)
    assert seen.type == "ADDED"
    assert seen.object.metadata.labels == {"app": "web"}
    assert str(seen.object.spec.containers[0].resources.requests["cpu"]) == "500m"
    assert seen.object.status.qos_class == "Burstable"
    empty.call("PATCH", f"{pod}/status", {"status": {"phase": "Running"}}, content=MERGE)
    running = await anext(changes)
    assert (running.type, running.object.status.phase) == ("MODIFIED", "Running")
    assert running.old
    assert running.old.status.phase == "Pending"
    empty.call("DELETE", f"{pod}?gracePeriodSeconds=0")
    while running.type != "DELETED":
        running = await anext(changes)
    assert not [held for held in followed.held.values() if held.metadata.namespace == namespace]


async def test_nodes_and_namespaces_are_read(store: KubeStore, empty: Cluster) -> None:
    has = {"cpu": "4", "memory": "8Gi", "kubernetes.io/batch-cpu": "1500"}
    empty.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"allocatable": has, "capacity": has}})
    try:
        node: Any = await store.get("Node", "", "n1")
        assert isinstance(node, Node)
        assert {name: str(amount) for name, amount in node.status.allocatable.items()} == {
            "cpu": "4",
            "memory": "8Gi",
            "kubernetes.io/batch-cpu": "1500",
        }
        assert not node.ready
    finally:
        empty.call("DELETE", "/api/v1/nodes/n1")
    listed: Any = (await store.list("Namespace")).items
    assert {"default", "kube-system"} <= {each.metadata.name for each in listed if isinstance(each, Namespace)}


# -- rights


@pytest.fixture
async def stranger(empty: Cluster, namespace: str) -> AsyncIterator[KubeStore]:
    """A store for a service account that may nothing yet."""
    empty.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "stranger"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/stranger/token"
    file = empty.write_kubeconfig(f"stranger-{namespace}", empty.call("POST", path, request)["status"]["token"])
    store = KubeStore(read_access(f"kube://{file}", {}), lambda: 0.0)
    yield store
    await store.close()


async def test_who_may_not_hears_who_and_what_and_a_mirror_waits_for_the_right(
    stranger: KubeStore, empty: Cluster, namespace: str
) -> None:
    name = f"system:serviceaccount:{namespace}:stranger"
    with pytest.raises(Denied, match=rf'"{name}" cannot list resource "nodeqoses"'):
        await stranger.list("NodeQoS")
    with pytest.raises(Denied, match="cannot create"):
        await stranger.put(reservation("db", cpu="1"), expect=ABSENT)
    await opened_and_put(empty, NodeQoS(metadata=Meta(name="n1")))
    followed = Mirror(stranger, "NodeQoS")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(soon(anext(followed.changes())))
        grant(empty, namespace)
    assert waiting.result().object.metadata.name == "n1"


async def test_an_unknown_token_is_reported(empty: Cluster) -> None:
    file = empty.write_kubeconfig("nobody", "unknown")
    store = KubeStore(read_access(f"kube://{file}", {}), lambda: 0.0)
    with pytest.raises(Denied, match=r"does not know the user of .*nobody.kubeconfig: GET /apis"):
        await store.list("NodeQoS")
    await store.close()


async def opened_and_put(cluster: Cluster, obj: Object) -> None:
    store = opened(cluster)
    await store.put(obj)
    await store.close()


def grant(cluster: Cluster, namespace: str) -> None:
    rules = [{"apiGroups": ["j10ce.io"], "resources": ["nodeqoses"], "verbs": ["list", "watch"]}]
    api = "/apis/rbac.authorization.k8s.io/v1"
    cluster.call("POST", f"{api}/clusterroles", {"metadata": {"name": namespace}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    subject = {"kind": "ServiceAccount", "name": "stranger", "namespace": namespace}
    binding = {"metadata": {"name": namespace}, "roleRef": role, "subjects": [subject]}
    cluster.call("POST", f"{api}/clusterrolebindings", binding)
