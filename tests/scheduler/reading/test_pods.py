"""What a scheduler reads of a pod, whatever the pod is like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.kube.native import decode_native
from j10ce.model.kube.placing import PREFERRED, REQUIRED
from j10ce.model.kube.surroundings import PodOwner
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, OwnerFacts, PodFacts
from j10ce.scheduler.book.shape import (
    HostPort,
    LabelTest,
    NodeExpression,
    NodeTerm,
    PodTerm,
    PreferredNodeTerm,
    Shape,
    SpreadConstraint,
    Toleration,
    WeightedPodTerm,
)
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader

MI = 1 << 20
LABELS = {"app": "web", "pod-template-hash": "77"}
META = {"name": "web-0", "namespace": "shop", "uid": "u", "labels": LABELS}


def read(spec: dict[str, Any], status: Any = None, **meta: Any) -> PodFacts:
    facts = PodReader(Owners().top).read(
        json.dumps({"metadata": META | meta, "spec": spec, "status": status or {}}).encode()
    )
    assert facts is not None
    return facts


def asking(*amounts: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": str(n), "resources": {"requests": each}} for n, each in enumerate(amounts)]


@pytest.mark.parametrize(
    ("spec", "requests", "weighed"),
    [
        pytest.param({"containers": asking({})}, (), (100, 200 * MI), id="asks for nothing, and uses something"),
        pytest.param(
            {"containers": asking({}, {"cpu": "2"})}, (("cpu", 2000),), (2100, 400 * MI), id="likely per container"
        ),
        pytest.param({"containers": asking({"cpu": "0"})}, (), (0, 200 * MI), id="a zero that is written counts"),
        pytest.param(
            {"containers": asking({"cpu": "1", "example.com/gpu": "2"}), "initContainers": asking({"cpu": "3"})},
            (("cpu", 3000), ("example.com/gpu", 2)),
            (3000, 200 * MI),
            id="an init container runs alone",
        ),
        pytest.param(
            {"containers": asking({"memory": "1Mi"}), "overhead": {"cpu": "250m"}},
            (("cpu", 250), ("memory", MI)),
            (350, MI),
            id="overhead comes on top",
        ),
        pytest.param(
            {"containers": asking({"cpu": "1"}), "resources": {"requests": {"cpu": "4"}}},
            (("cpu", 4000),),
            (4000, 200 * MI),
            id="as a whole",
        ),
    ],
)
def test_amounts(spec: dict[str, Any], requests: tuple[tuple[str, int], ...], weighed: tuple[int, int]) -> None:
    shape = read(spec).shape
    assert (shape.requests, shape.weighed) == (requests, weighed)


WEB = {"matchLabels": {"app": "web"}}
IS_WEB = LabelTest((("app", "web"),))
ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
IN_ZONE_A = NodeTerm((NodeExpression("zone", "In", ("a",)),))


def test_what_no_node_has_breaks_no_book() -> None:
    """Whoever may create a pod may name its node, and whatever amounts an API server takes."""
    book = Book()
    book.put_node(NodeFacts("n", {}, {"cpu": 1000, "memory": 1 << 30, "pods": 110}))
    for n, asked in enumerate(({"cpu": "9223372036854775807"}, {"memory": "9223372036854775807"})):
        pod = read({"nodeName": "n", "containers": asking(asked, asked)}, uid=str(n))
        book.put_pod(pod)
    assert (book.weighed[0] > 0).all()
    for n in range(2):
        book.remove_pod(str(n))
    assert not book.used.any()
    assert not book.weighed.any()


@pytest.mark.parametrize(
    ("of_kubelet", "cpu"),
    [
        pytest.param({"allocatedResources": {"cpu": "2"}}, 2000, id="it shrinks, and is not smaller yet"),
        pytest.param({"resources": {"requests": {"cpu": "3"}}}, 3000, id="what is in force is larger still"),
        pytest.param({"allocatedResources": {"cpu": "100m"}}, 500, id="it grows: what it asks for counts at once"),
        pytest.param({}, 500, id="a kubelet of old says nothing"),
    ],
)
def test_while_it_is_resized_it_has_the_more_of_both(of_kubelet: dict[str, Any], cpu: int) -> None:
    facts = read({"containers": asking({"cpu": "500m"})}, {"containerStatuses": [{"name": "0", **of_kubelet}]})
    assert facts.shape.requests == (("cpu", cpu),)


def test_where_it_wants_to_run() -> None:
    near = {"labelSelector": WEB, "topologyKey": "zone"}
    shape = read(
        {
            "nodeSelector": {"b": "2", "a": "1"},
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}, {}],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [ZONE_A]},
                    PREFERRED: [{"weight": 7, "preference": ZONE_A}],
                },
                "podAffinity": {REQUIRED: [near | {"namespaces": ["x"], "namespaceSelector": {}}]},
                "podAntiAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": near}]},
            },
        }
    ).shape
    assert shape.node_selector == (("a", "1"), ("b", "2"))
    assert shape.tolerations == (Toleration("k", "Exists", "", "NoSchedule"), Toleration())
    assert shape.affinity.nodes == (IN_ZONE_A,)
    assert shape.affinity.preferred_nodes == (PreferredNodeTerm(7, IN_ZONE_A),)
    assert shape.affinity.pods == (PodTerm(IS_WEB, "zone", ("x",), LabelTest()),)
    assert shape.affinity.preferred_anti_pods == (WeightedPodTerm(3, PodTerm(IS_WEB, "zone")),)


def test_spreading_counts_pods_with_the_same_values_of_keys_that_the_pod_has() -> None:
    constraint = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": WEB,
        "matchLabelKeys": ["pod-template-hash", "lacking"],
    }
    own = NodeExpression("pod-template-hash", "In", ("77",))
    test = LabelTest((("app", "web"),), (own,))
    assert read({"topologySpreadConstraints": [constraint]}).shape.spread == (
        SpreadConstraint(2, "zone", "ScheduleAnyway", test),
    )


def test_ports_on_the_host() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}, {"containerPort": 81}]
    containers = [{"name": "a", "image": "reg:5000/web", "ports": ports}]
    shape = read({"containers": containers}).shape
    assert shape.ports == (HostPort(8080, "UDP", "10.0.0.1"),)
    assert shape.images == ("reg:5000/web:latest",)
    assert HostPort(81) in read({"containers": containers, "hostNetwork": True}).shape.ports


def test_equal_pods_share_their_shape() -> None:
    reader = PodReader(Owners().top)
    texts = [
        json.dumps({"metadata": {"name": n, "uid": n}, "spec": {"containers": asking({"cpu": "1"})}}) for n in "ab"
    ]
    one, other = (reader.read(text.encode()) for text in texts)
    assert one is not None
    assert other is not None
    assert one.shape is other.shape


def test_times_and_marks() -> None:
    facts = read(
        {
            "schedulerName": "ours",
            "priority": 5,
            "preemptionPolicy": "Never",
            "schedulingGates": [{"name": "example.com/wait"}],
            "priorityClassName": "system-node-critical",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
                {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "etc", "configMap": {"name": "etc"}},
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}],
        },
        {
            "phase": "Running",
            "nominatedNodeName": "n",
            "containerStatuses": [
                {"name": "a", "state": {"running": {"startedAt": f"1970-01-01T00:00:0{s}Z"}}} for s in "53"
            ],
        },
        creationTimestamp="1970-01-01T00:00:01Z",
        deletionTimestamp="1970-01-01T00:01:00Z",
        deletionGracePeriodSeconds=30,
    )
    assert facts[6:17] == (
        *("ours", 5, False, 1.0, "", "n", "Running", 3.0, 30.0),
        ("example.com/wait",),
        ("disk", "web-0-tmp"),
    )
    assert facts.unjudged == ("resource claim gpu",)
    assert facts.critical


@pytest.mark.parametrize(
    ("part", "value", "fault"),
    [
        pytest.param("affinity", {"podAffinity": 7}, "spec.affinity", id="affinity"),
        pytest.param("tolerations", [{"operator": "Almost"}], "spec.tolerations", id="an operator that nobody knows"),
        pytest.param("topologySpreadConstraints", {}, "spec.topologySpreadConstraints", id="spreading"),
        pytest.param("containers", [{"name": 3}], "spec.containers", id="containers"),
        pytest.param("volumes", "none", "spec.volumes", id="volumes"),
        pytest.param("priority", "high", "spec.priority", id="priority"),
    ],
)
def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_read(part: str, value: Any, fault: str) -> None:
    facts = read({part: value, "nodeName": "n", "nodeSelector": {"a": "1"}})
    assert facts.node == "n"
    assert facts.shape.node_selector == (("a", "1"),)
    assert any(line.startswith(fault) for line in facts.unjudged)


def test_nulls_are_what_is_left_out() -> None:
    nothing = {"affinity": None, "tolerations": None, "volumes": None, "containers": None, "nodeName": None}
    facts = read(nothing | {"topologySpreadConstraints": [{"labelSelector": None, "matchLabelKeys": None}]})
    assert not facts.unjudged
    assert facts.shape == Shape(spread=(SpreadConstraint(1, "", "DoNotSchedule", None),))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted({
        "metadata", "name", "uid", "spec", "status", "affinity", "nodeAffinity", "tolerations", "key", "operator",
        "containers", "resources", "requests", "cpu", "volumes", "labels", REQUIRED, "topologySpreadConstraints",
        "matchLabelKeys", "labelSelector", "matchLabels", "ownerReferences", "controller", "kind", "overhead",
    })), inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@given(st.fixed_dictionaries({"metadata": st.just(META) | JSON, "spec": JSON, "status": JSON}) | JSON)
def test_whatever_a_pod_is_like_it_is_read_or_is_none(pod: Any) -> None:
    facts = PodReader(Owners().top).read(json.dumps(pod).encode())
    assert facts is None or (isinstance(facts, PodFacts) and hash(facts.shape) is not None)


@given(st.binary(max_size=40))
def test_what_is_no_json_is_no_pod(text: bytes) -> None:
    assert PodReader(Owners().top).read(text) is None


def owner(kind: str, text: dict[str, Any]) -> PodOwner:
    return decode_native(json.dumps(text).encode(), PodOwner)


def reference(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"kind": "Other", "name": "other"}, {"kind": kind, "name": name, "controller": True}]


def test_the_owner_of_a_pod_is_the_deployment_above_its_replica_set() -> None:
    owners = Owners()
    owners.put("Deployment", owner("Deployment", {
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"slo": "0.9"}}, "spec": {"replicas": 3},
    }))  # fmt: skip
    owners.put("ReplicaSet", owner("ReplicaSet", {
        "metadata": {"name": "web-77", "namespace": "shop", "ownerReferences": reference("Deployment", "web")},
        "spec": {"replicas": 2, "selector": WEB},
    }))  # fmt: skip
    facts = PodReader(owners.top).read(
        json.dumps({"metadata": META | {"ownerReferences": reference("ReplicaSet", "web-77")}}).encode()
    )
    assert facts is not None
    assert facts.owner == OwnerFacts("Deployment", "shop", "web", 3, "0.9", 0, IS_WEB)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "top"),
    [
        pytest.param("ReplicaSet", "web-77", {"pod-template-hash": "77"}, ("Deployment", "web"), id="of a Deployment"),
        pytest.param("ReplicaSet", "web-77", {}, ("ReplicaSet", "web-77"), id="by itself"),
        pytest.param("ReplicaSet", "web", {"pod-template-hash": "77"}, ("ReplicaSet", "web"), id="of another name"),
        pytest.param("ReplicaSet", "-77", {"pod-template-hash": "77"}, ("ReplicaSet", "-77"), id="of no name"),
        pytest.param("Job", "web-77", {"pod-template-hash": "77"}, ("Job", "web-77"), id="no ReplicaSet"),
    ],
)
def test_a_pod_that_comes_before_its_replica_set_is_of_the_same_owner_as_those_that_come_behind(
    kind: str, name: str, labels: dict[str, str], top: tuple[str, str]
) -> None:
    owners = Owners()
    meta = META | {"labels": labels, "ownerReferences": reference(kind, name)}
    text = json.dumps({"metadata": meta}).encode()
    before = PodReader(owners.top).read(text)
    above = {"ownerReferences": reference(*top)} if top[1] != name else {}
    owners.put(kind, owner(kind, {"metadata": {"name": name, "namespace": "shop"} | above}))
    behind = PodReader(owners.top).read(text)
    assert before is not None
    assert behind is not None
    assert before.owner is not None
    assert behind.owner is not None
    assert (before.owner.kind, before.owner.name) == (behind.owner.kind, behind.owner.name) == top


@pytest.mark.parametrize(
    ("kind", "text", "slots"),
    [
        pytest.param("Job", {"spec": {"parallelism": 4, "completions": 9}}, 4, id="Job"),
        pytest.param("DaemonSet", {"status": {"desiredNumberScheduled": 7}}, 7, id="DaemonSet"),
        pytest.param("StatefulSet", {"spec": {"replicas": 5}}, 5, id="StatefulSet"),
        pytest.param("ReplicaSet", {"spec": {"replicas": -2}}, 0, id="never below none"),
        pytest.param("CronJob", {"spec": {"jobTemplate": {}}}, 1, id="CronJob"),
    ],
)
def test_slots_of_an_owner(kind: str, text: dict[str, Any], slots: int) -> None:
    owners = Owners()
    assert owners.put(kind, owner(kind, {"metadata": {"name": "o", "namespace": "shop"}} | text)).slots == slots
    assert owners.remove(kind, "shop", "o") is not None
    assert owners.remove(kind, "shop", "o") is None
