"""What a pod is as a workload: its requests and limits as a kubelet reckons, its containers, its standing."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.adapters.kubernetes_workload import cgroup_uid, critical, in_use, workload
from j10ce.model.kube.native import decode_native
from j10ce.model.kube.pod import Pod, PodIp
from j10ce.model.workload import Ceiling, Handle, Reclaimable, Workload
from j10ce.testing import build

AT = Handle("kubepods/podx", made=False)
GIB = 2**30


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def asking(cpu: str = "", memory: str = "") -> dict[str, str]:
    return {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    meta = {"name": "web", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw = {"metadata": meta, "spec": {"containers": containers, **spec}, "status": status or {}}
    return decode_native(msgspec.json.encode(raw), Pod)


def made(of: Pod) -> Workload:
    return workload(of, {}, AT, {})


def test_containers_add_up() -> None:
    one = container("a", resources={"requests": asking("100m", "1Gi"), "limits": asking("1", "2Gi")})
    two = container("b", resources={"requests": asking("300m"), "limits": asking("500m", "1Gi")})
    result = made(pod(one, two))
    assert (result.requests.cpu, result.requests.memory) == (400, 2 * GIB)  # a limit without a request is one
    assert result.limits == Ceiling(1500, 3 * GIB)
    assert result.native_class == "Burstable"


def test_what_is_asked_of_capacity_that_others_leave_is_kept_by_band_and_by_container() -> None:
    batch = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "1Gi"}
    ours = {"j10ce.io/mid-cpu": "1k"}
    statuses = [{"name": "a", "containerID": "containerd://1", "state": {"running": {}}}]
    shown = pod(
        container("a", resources={"requests": batch, "limits": batch}),
        container("b", resources={"requests": {**batch, **ours}, "limits": batch}),
        status={"containerStatuses": statuses},
    )
    whole = workload(shown, {}, AT, {"1": Handle("kubepods/podx/1")})
    assert whole.reclaimable == {
        "batch": Reclaimable(build.resources(cpu="1", memory="2Gi"), Ceiling(1000, 2 * GIB)),
        "mid": Reclaimable(build.resources(cpu="1")),
    }
    assert whole.parts[0].reclaimable == {
        "batch": Reclaimable(build.resources(cpu="500m", memory="1Gi"), Ceiling(500, GIB))
    }
    assert whole.native_class == "BestEffort"
    assert made(pod(container())).reclaimable == {}


def test_an_absurd_amount_of_an_extended_resource_is_cut() -> None:
    shown = made(pod(container(resources={"requests": {"kubernetes.io/batch-cpu": "9000E"}})))
    assert shown.reclaimable["batch"].requests.cpu == 2**53


def test_only_annotations_that_a_rule_may_read_are_kept() -> None:
    said = {
        "j10ce.io/a": "1",
        "koordinator.sh/b": "2",
        "scheduling.koordinator.sh/c": "3",
        "notkoordinator.sh/d": "4",
        "example.com/koordinator.sh": "5",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "koordinator.sh/long": "x" * 16_385,
    }
    shown = pod(container())
    shown = replace(shown, metadata=replace(shown.metadata, annotations=said))
    assert made(shown).annotations == {"j10ce.io/a": "1", "koordinator.sh/b": "2", "scheduling.koordinator.sh/c": "3"}
    many = replace(shown, metadata=replace(shown.metadata, annotations={f"j10ce.io/{n}": "" for n in range(1000)}))
    assert len(made(many).annotations) == 64


def test_the_priority_of_a_pod_is_known_and_none_is_not_zero() -> None:
    assert made(pod(container(), priority=9000)).priority == 9000
    assert made(pod(container())).priority is None


@pytest.mark.parametrize(("spec", "own"), [({}, True), ({"hostNetwork": False}, True), ({"hostNetwork": True}, False)])
def test_a_pod_has_a_network_of_its_own_unless_it_is_in_the_hosts(spec: dict[str, bool], own: bool) -> None:
    shown = pod(container(), **spec)
    shown = replace(shown, status=replace(shown.status, pod_ips=(PodIp(ip="10.0.0.7"), PodIp(ip="fd00::7"))))
    assert made(shown).own_network is own
    assert made(shown).addresses == (("10.0.0.7", "fd00::7") if own else ())


def test_a_container_without_a_limit_leaves_the_pod_without_one() -> None:
    result = made(pod(container("a", resources={"limits": asking("1", "1Gi")}), container("b")))
    assert result.limits == Ceiling()


def test_init_containers_count_where_they_need_more_and_sidecars_always() -> None:
    init = container("init", resources={"requests": asking("2")})
    sidecar = container("proxy", restartPolicy="Always", resources={"requests": asking("500m")})
    main = container("main", resources={"requests": asking("1")})
    assert made(pod(main, initContainers=[init])).requests.cpu == 2000
    assert made(pod(main, initContainers=[sidecar])).requests.cpu == 1500
    assert made(pod(main, initContainers=[sidecar, init])).requests.cpu == 2500


def test_what_is_asked_for_the_pod_as_a_whole_goes_before_its_containers() -> None:
    main = container(resources={"requests": asking("1"), "limits": asking("1")})
    whole = {"requests": asking("2", "1Gi"), "limits": asking("3", "2Gi")}
    result = made(pod(main, resources=whole))
    assert (result.requests.cpu, result.requests.memory) == (2000, GIB)
    assert result.limits == Ceiling(3000, 2 * GIB)


def test_overhead_is_on_top_of_requests_and_of_limits_that_there_are() -> None:
    main = container(resources={"requests": asking("1"), "limits": asking("2")})
    result = made(pod(main, overhead=asking("100m", "64Mi")))
    assert result.requests.cpu == 1100
    assert result.limits == Ceiling(2100, math.inf)


RESIZE_STATUS = {
    "name": "main",
    "state": {"running": {}},
    "allocatedResources": asking("1"),
    "resources": {"requests": asking("1"), "limits": asking("1")},
}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"resize": "Deferred"}, 1000),
        ({"resize": "InProgress"}, 1000),
        ({"conditions": [{"type": "PodResizePending", "status": "True"}]}, 1000),
        ({"conditions": [{"type": "PodResizePending", "status": "False"}]}, 2000),
        ({}, 2000),
    ],
)
def test_while_it_is_resized_a_pod_has_what_its_status_tells(status: dict[str, Any], cpu: int) -> None:
    main = container(resources={"requests": asking("2"), "limits": asking("2")})
    result = made(pod(main, status={"containerStatuses": [RESIZE_STATUS], **status}))
    assert (result.requests.cpu, result.limits.cpu) == (cpu, cpu)


PENDING = {"type": "PodResizePending", "status": "True"}


@pytest.mark.parametrize(
    ("asked", "limit", "status", "expected"),
    [
        pytest.param("1", "1", {}, False, id="as it runs"),
        pytest.param("2", "1", {}, True, id="another request"),
        pytest.param("1", "2", {}, True, id="another limit"),
        pytest.param("2", "1", {"conditions": [{**PENDING, "reason": "Infeasible"}]}, False, id="infeasible"),
        pytest.param("2", "1", {"conditions": [{**PENDING, "reason": "Deferred"}]}, False, id="deferred"),
        pytest.param("2", "1", {"resize": "Infeasible"}, False, id="infeasible before 1.33"),
        pytest.param("2", "1", {"resize": "Proposed"}, True, id="proposed before 1.33"),
        pytest.param("1", "1", {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}, True, id="begun"),
        pytest.param("1", "1", {"resize": "InProgress"}, True, id="begun before 1.33"),
    ],
)
def test_a_pod_is_being_resized_while_its_kubelet_has_something_to_write(
    asked: str, limit: str, status: dict[str, Any], expected: bool
) -> None:
    main = container(resources={"requests": asking(asked), "limits": asking(limit)})
    assert made(pod(main, status={"containerStatuses": [RESIZE_STATUS], **status})).resizing is expected


def test_a_deferred_resize_that_is_granted_is_one() -> None:
    granted = {**RESIZE_STATUS, "allocatedResources": asking("2")}
    main = container(resources={"requests": asking("2"), "limits": asking("1")})
    status = {"containerStatuses": [granted], "conditions": [{**PENDING, "reason": "Deferred"}]}
    assert made(pod(main, status=status)).resizing


def test_a_kubelet_that_does_not_tell_what_runs_resizes_nothing() -> None:
    main = container(resources={"requests": asking("2")})
    fields = {"name": "main", "state": {"running": {}}}
    assert not made(pod(main, status={"containerStatuses": [fields]})).resizing


@pytest.mark.parametrize(
    ("meta", "spec", "expected"),
    [
        ({}, {}, False),
        ({}, {"priorityClassName": "system-node-critical"}, True),
        ({}, {"priorityClassName": "system-cluster-critical"}, True),
        ({}, {"priorityClassName": "high"}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "abc"}}, {}, True),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, {}, True),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, {}, False),
        ({"namespace": "j10ce-system"}, {}, True),
    ],
)
def test_who_is_never_below_tier_system(meta: dict[str, Any], spec: dict[str, Any], expected: bool) -> None:
    decoded = decode_native(msgspec.json.encode({"metadata": meta, "spec": spec}), Pod)
    assert critical(decoded) is expected


def test_a_mirror_pods_cgroup_has_the_kubelets_uid() -> None:
    meta = {"uid": "api", "annotations": {"kubernetes.io/config.mirror": "0f1e"}}
    assert cgroup_uid(decode_native(msgspec.json.encode({"metadata": meta}), Pod)) == "0f1e"


def status(name: str, state: str, id_: str) -> dict[str, Any]:
    return {"name": name, "containerID": f"containerd://{id_}", "state": {state: {}}}


def test_parts_are_the_containers_that_run_and_have_a_cgroup() -> None:
    given = pod(
        container("main", resources={"requests": asking("100m")}),
        container("ended"),
        container("unseen"),
        initContainers=[container("proxy", restartPolicy="Always"), container("init")],
        status={
            "containerStatuses": [
                status("main", "running", "a1"),
                status("ended", "terminated", "b2"),
                status("unseen", "running", "c3"),
            ],
            "initContainerStatuses": [status("proxy", "running", "d4"), status("init", "terminated", "e5")],
        },
    )
    handles = {id_: Handle(f"kubepods/podx/{id_}", made=False) for id_ in ("a1", "b2", "d4", "e5")}
    parts = workload(given, {}, AT, handles).parts
    assert [(p.name, p.handle.path.rpartition("/")[2], p.requests.cpu) for p in parts] == [
        ("proxy", "d4", 0),
        ("main", "a1", 100),
    ]


def test_its_namespace_is_known_by_name_on_old_versions_too() -> None:
    result = workload(pod(container()), {"team": "shop"}, AT, {})
    assert result.namespace_labels == {"kubernetes.io/metadata.name": "shop", "team": "shop"}
    assert result.since == 1767225600.0


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 64).map(str))
resources = st.fixed_dictionaries({"requests": amounts, "limits": amounts})
containers = st.lists(resources, max_size=4).map(
    lambda all_: [container(f"c{n}", resources=r) for n, r in enumerate(all_)]
)
inits = st.lists(st.tuples(resources, st.booleans()), max_size=3).map(
    lambda all_: [
        container(f"i{n}", resources=r, **({"restartPolicy": "Always"} if along else {}))
        for n, (r, along) in enumerate(all_)
    ]
)


@given(containers, inits)
def test_a_pod_asks_for_at_least_what_any_of_its_containers_asks(
    mains: list[dict[str, Any]], first: list[dict[str, Any]]
) -> None:
    result = made(pod(*mains, initContainers=first))
    for each in (*mains, *first):
        asked = {**each["resources"]["limits"], **each["resources"]["requests"]}
        assert result.requests.cpu >= int(asked.get("cpu", 0)) * 1000
        assert result.requests.memory >= int(asked.get("memory", 0))
    for limit, name in zip((result.limits.cpu, result.limits.memory), ("cpu", "memory"), strict=True):
        unlimited = any(name not in each["resources"]["limits"] for each in (*mains, *first))
        assert not (unlimited and limit != math.inf)


def test_what_containers_run_with_moves_once_the_kubelet_has_written_it() -> None:
    def running_with(cpu: str) -> Pod:
        status = {"name": "main", "resources": {"requests": asking(cpu)}, "allocatedResources": asking("200m")}
        return pod(container(resources={"requests": asking("200m")}), status={"containerStatuses": [status]})

    assert made(running_with("100m")) == made(running_with("200m")), "to everyone else it is the same pod"
    assert in_use(running_with("100m")) != in_use(running_with("200m"))
    assert in_use(running_with("200m")) == in_use(running_with("200m"))
