"""What happens to pods while they run: contention, resizes, restarts, other writers, an API server that is away."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.agent.process import eventually
from tests.kube.agent.installed import Installed, PodAgent
from tests.kube.agent.test_pods import QOS, read
from tests.lab.kube.node import BUSY, container, pod

MEASURED_S = 3.0
CPUS = len(os.sched_getaffinity(0))


def used(group: Path) -> int:
    return read(Path(str(group).replace("/cpu/", "/cpuacct/")), "cpuacct.usage")


def cpus(*groups: Path) -> list[float]:
    """In use on average, of all groups over the same span."""
    begun, before = time.monotonic(), [used(g) for g in groups]
    time.sleep(MEASURED_S)
    after, span_s = [used(g) for g in groups], time.monotonic() - begun
    return [(b - a) / 1e9 / span_s for a, b in zip(before, after, strict=True)]


@pytest.mark.one_version
def test_a_protected_pod_beside_hogs_gets_its_floor(lab: Installed, agent: PodAgent) -> None:
    """One has a reservation, one is best-effort by profile, one weighs fifty times as much as either by its request."""
    lab.policy("db", selector={"matchLabels": {"app": "db"}}, minimum={"cpu": "300m"})
    small = [container(f"c{n}", command=BUSY, requests={"cpu": "10m"}) for n in range(2)]
    large = [container(f"c{n}", command=BUSY, requests={"cpu": "500m"}) for n in range(2)]
    uids = [
        lab.node.run("db", labels={"app": "db"}, containers=small),
        lab.node.run("hog", labels={QOS: "be"}, containers=small),
        lab.node.run("plain", containers=large),
    ]
    groups = [lab.node.cgroup(uid) for uid in uids]
    agent.begin()
    assert eventually(lambda: read(groups[0]) > 20 and read(groups[1], "cpu.idle") == 1)

    def protected() -> bool:
        """Over one span, of what all pods get: the weights follow what else the machine does, and who is no pod is
        not held back, so a span may begin before they have, and the pods may have less than the machine."""
        db, hog, plain = cpus(*groups)
        return db / (db + hog + plain) > 0.29 / CPUS and hog < db / 4

    assert eventually(protected)


@pytest.mark.one_version
def test_containers_share_the_floor_of_their_pod(lab: Installed, agent: PodAgent) -> None:
    lab.policy("db", minimum={"cpu": "400m"})
    pair = [container("big", requests={"cpu": "90m"}), container("small", requests={"cpu": "30m"})]
    uid = lab.node.run("db", containers=pair)
    agent.begin()
    assert eventually(lambda: sorted(agent.workloads()["db"]["spec"]["parts"]) == ["big", "small"])
    assert agent.workloads()["db"]["status"]["floor"]["cpu"] == "400m"
    assert {name: read(group) for name, group in lab.node.containers(uid, "db").items()} == {"big": 92, "small": 30}


def test_a_container_that_restarts_is_a_part_again(lab: Installed, agent: PodAgent) -> None:
    lab.policy("db", minimum={"cpu": "400m"})
    uid = lab.node.run("db", command=["/bin/sh", "-c", "sleep 3"], restartPolicy="Always")
    agent.begin()
    assert agent.knows("db")
    first = lab.node.containers(uid, "db")["main"]
    assert eventually(lambda: lab.node.containers(uid, "db")["main"] != first)
    assert eventually(lambda: agent.workloads()["db"]["spec"]["parts"] == ["main"])
    assert agent.workloads()["db"]["status"]["floor"]["cpu"] == "400m"


def test_a_sidecar_is_a_part(lab: Installed, agent: PodAgent) -> None:
    if lab.cluster.version == "old":
        pytest.skip("Unsupported: sidecars need Kubernetes 1.29")
    lab.policy("db", minimum={"cpu": "100m"})
    sidecar = container("proxy", restartPolicy="Always")
    lab.node.run("db", initContainers=[sidecar])
    agent.begin()
    assert eventually(lambda: agent.workloads()["db"]["spec"]["parts"] == ["proxy", "main"])


def test_a_resized_pod_keeps_its_floor(lab: Installed, agent: PodAgent) -> None:
    """The kubelet writes what the pod asks for now; ours is on top again, and its value is the one that goes back."""
    if lab.cluster.version == "old":
        pytest.skip("Unsupported: in-place resize needs Kubernetes 1.27")
    uid = lab.reserved()
    group = lab.node.cgroup(uid)
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "120m"}}}]}}
    path = "/api/v1/namespaces/default/pods/db/resize"
    lab.cluster.call("PATCH", path, patch, content="application/strategic-merge-patch+json")
    (inner,) = lab.node.containers(uid, "db").values()
    assert eventually(lambda: read(inner) == 122)
    assert eventually(lambda: agent.workloads()["db"]["spec"]["requests"]["cpu"] == "120m")
    assert eventually(lambda: read(group) > 122)
    assert eventually(lambda: '"original": "122"' in json.dumps(agent.client.get("/v1/journal")), 60)
    assert agent.client.post("/v1/revert", {})["left"] == []
    assert read(group) == 122, "not what it had before it was resized"


def test_an_idle_pod_is_resized_in_place_and_idle_again(lab: Installed, agent: PodAgent) -> None:
    """The kernel refuses cpu.shares to an idle group, so it is awake until the kubelet has written."""
    if lab.cluster.version == "old":
        pytest.skip("Unsupported: in-place resize needs Kubernetes 1.27")
    uid = lab.node.run("batch", labels={QOS: "be"}, requests={"cpu": "100m"})
    group = lab.node.cgroup(uid)
    agent.begin()
    assert eventually(lambda: read(group, "cpu.idle") == 1)
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    path = "/api/v1/namespaces/default/pods/batch"
    lab.cluster.call("PATCH", f"{path}/resize", patch, content="application/strategic-merge-patch+json")
    (inner,) = lab.node.containers(uid, "batch").values()
    assert eventually(lambda: read(inner) == 204, 60)
    assert eventually(lambda: resized(lab.cluster.call("GET", path)["status"], "200m"), 60)
    assert eventually(lambda: read(group, "cpu.idle") == 1, 60)
    assert agent.client.post("/v1/revert", {})["left"] == []
    assert (read(group, "cpu.idle"), read(group)) == (0, 204), "not what it had before it was idle"


def resized(status: Mapping[str, Any], cpu: str) -> bool:
    """The kubelet has nothing left to do."""
    open_ones = [c for c in status["conditions"] if c["type"].startswith("PodResize") and c["status"] == "True"]
    return not open_ones and status["containerStatuses"][0]["resources"]["requests"]["cpu"] == cpu


def test_a_static_pod_is_found_by_the_uid_of_its_cgroup(lab: Installed, agent: PodAgent) -> None:
    manifest = lab.node.home / "manifests/static.json"
    body = pod("static", labels={QOS: "be"})
    del body["spec"]["nodeName"]
    manifest.write_text(json.dumps(body))
    try:
        agent.begin()
        name = f"static-{lab.node.name}"
        assert agent.knows(name)
        assert agent.workloads()[name]["status"]["tier"] == "system"
    finally:
        manifest.unlink()
    assert eventually(lambda: name not in agent.workloads())


@pytest.mark.one_version
def test_who_else_writes_is_answered_three_times_then_yielded_to(lab: Installed, agent: PodAgent) -> None:
    group = lab.node.cgroup(lab.reserved())
    agent.configure(period="0.2s", daemonset="j10ce-system/j10ce-qos-agent")
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    answered = 0

    def yielded() -> bool:
        """A weight that changes by itself at the same instant is no answer to theirs, so they go on until one is."""
        nonlocal answered
        if read(group) > 102:
            answered += 1
            (group / "cpu.shares").write_text("77")
        return "yield" in json.dumps(agent.client.get("/v1/status")).lower()

    assert eventually(yielded, 120)
    assert answered > 3, "the first write was no answer"
    assert read(group) == 77


@pytest.mark.one_version
def test_without_the_api_server_floors_stay_and_survive_a_restart(lab: Installed, agent: PodAgent) -> None:
    group = lab.node.cgroup(lab.reserved())
    lab.node.run("gone")
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    assert eventually(lambda: (agent.run_dir / "pods.json").exists())
    lab.cluster.kill("kube-apiserver")
    try:
        agent.stop()
        agent.begin()
        assert agent.knows("db", "gone")
        assert agent.workloads()["db"]["status"]["floor"]["cpu"] == "500m"
        assert read(group) > 102
        assert "lost" in agent.client.get("/v1/status")["server"]
    finally:
        lab.cluster.restart("kube-apiserver")
    assert eventually(lambda: "lost" not in agent.client.get("/v1/status")["server"], 60)
    assert agent.knows("db", "gone")
    assert read(group) > 102
