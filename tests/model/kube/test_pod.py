"""Pods as Kubernetes writes them: read leniently, added up as the scheduler and the kubelet do."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from j10ce.model.kube.native import APPLIED_ANNOTATION, LONGEST_ANNOTATION, Node, Pool, decode_native, slim
from j10ce.model.kube.pod import Pod, limits, requests, slim_pod
from j10ce.model.quantity import LARGEST, Quantity


def container(cpu: str = "", limit: str = "", **more: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu} if cpu else {}, "limits": {"cpu": limit} if limit else {}}
    return {"name": "c", "image": "busybox", "resources": resources, **more}


def sidecar(cpu: str, limit: str = "") -> dict[str, Any]:
    return container(cpu, limit, restartPolicy="Always")


def pod(**spec: Any) -> Pod:
    return read({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})


def read(raw: dict[str, Any]) -> Pod:
    return decode_native(json.dumps({"apiVersion": "v1", "kind": "Pod", **raw}).encode(), Pod)


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, "1500m", id="containers add up"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3"), container("2")]},
            "3",
            id="init containers run one after the other, before the rest",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2")]}, "3", id="a sidecar runs along"
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [sidecar("2"), container("4"), sidecar("1")]},
            "6",
            id="an init container runs with the sidecars before it",
        ),
        pytest.param({"containers": [container(limit="2")]}, "2", id="a limit without a request is one"),
        pytest.param({"containers": [container("1", "2")], "overhead": {"cpu": "250m"}}, "1250m", id="overhead"),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, "5", id="asked for as a whole"
        ),
    ],
)
def test_what_a_node_is_charged(spec: dict[str, Any], cpu: str) -> None:
    assert requests(pod(**spec)) == {"cpu": Quantity.parse(cpu)}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container(limit="1"), container(limit="2")]}, "3", id="limits add up"),
        pytest.param({"containers": [container(limit="1"), container("2")]}, None, id="one without has no bound"),
        pytest.param(
            {"containers": [container("1")], "resources": {"limits": {"cpu": "5"}}}, "5", id="bound as a whole"
        ),
        pytest.param({"containers": []}, None, id="no containers"),
    ],
)
def test_what_a_pod_may_use(spec: dict[str, Any], cpu: str | None) -> None:
    assert limits(pod(**spec)) == ({"cpu": Quantity.parse(cpu)} if cpu else {})


def test_an_amount_beyond_our_numbers_counts_as_the_largest() -> None:
    assert requests(pod(containers=[container("1e30")])) == {"cpu": Quantity(LARGEST)}


def test_what_we_do_not_know_is_no_obstacle() -> None:
    seen = read({"metadata": {"name": "p", "selfLink": "/x", "managedFields": [{}]}, "spec": {"volumes": [{}]}})
    assert seen.metadata.name == "p"
    with pytest.raises(msgspec.MsgspecError):
        decode_native(b'{"metadata": 7}', Pod)


def test_container_ids_and_the_state_of_a_resize_are_read() -> None:
    state = {"name": "c", "containerID": "containerd://ab", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    seen = read({"status": {"phase": "Running", "containerStatuses": [state], "resize": "InProgress"}})
    (status,) = seen.status.container_statuses
    assert (status.container_id, seen.status.resize, seen.ended) == ("containerd://ab", "InProgress", False)
    assert status.state.running


def test_pods_of_one_template_share_what_they_have_in_common() -> None:
    pool = Pool()
    meta = {"labels": {"app": "web"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "1"}]}
    one, other = (
        slim_pod(read({"metadata": {"name": name, **meta}, "spec": {"containers": [container("1", "2")]}}), pool)
        for name in ("a", "b")
    )
    assert one != other
    assert one.metadata.labels is other.metadata.labels
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.spec.containers is other.spec.containers
    assert one.spec.containers[0].resources.limits == {"cpu": Quantity.parse("2")}
    assert one.status is other.status


def test_a_pool_that_is_full_begins_again() -> None:
    pool = Pool(most=2)
    first = [pool.words({"n": str(n)}) for n in range(4)]
    again = pool.words({"n": "0"})
    assert again == first[0]
    assert again is not first[0]


def test_long_annotations_are_left_out() -> None:
    long = {APPLIED_ANNOTATION: "{}", "long": "x" * (LONGEST_ANNOTATION + 1), "j10ce.io/short": "y"}
    node = decode_native(json.dumps({"metadata": {"name": "n", "annotations": long}}).encode(), Node)
    assert slim(node, Pool()).metadata.annotations == {"j10ce.io/short": "y"}
