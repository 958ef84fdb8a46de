"""Pods of profile `realtime` on a real node, beside hogs, and through a restart of its kubelet."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.realtime.machine import FAIR, OURS, Linux, WardPlace
from j10ce.kernel.realtime.nets import support
from tests.agent.process import eventually
from tests.kube.agent.installed import Installed, PodAgent
from tests.kube.agent.test_koordinator import trusted
from tests.kube.agent.test_pods import QOS
from tests.lab.kube.node import BUSY


@pytest.fixture(autouse=True)
def able() -> None:
    if needs := support(Hierarchies.discover()).needs:
        pytest.skip(f"Unsupported: sched.realtime needs {needs}")


def policies(group: Path) -> set[int | None]:
    """Of all threads in a container."""
    linux = Linux()
    return {linux.policy(thread) for thread in linux.threads(WardPlace(str(group), "tasks", "")) or ()} - {None}


def container(lab: Installed, uid: str, name: str) -> Path:
    """The sandbox of its pod sleeps for ever in a group of its own."""
    return lab.node.containers(uid, name)["main"]


def used(group: Path) -> int:
    return int((Path(str(group).replace("/cpu/", "/cpuacct/")) / "cpuacct.usage").read_text())


def test_a_pod_is_real_time_beside_hogs_and_after_its_kubelet_began_again(lab: Installed, agent: PodAgent) -> None:
    with trusted(lab):
        api = container(lab, lab.node.run("api", labels={QOS: "realtime"}, requests={"cpu": "300m"}), "api")
        hogs = [
            container(lab, lab.node.run("burstable", requests={"cpu": "100m"}, command=BUSY), "burstable"),
            container(lab, lab.node.run("besteffort", command=BUSY), "besteffort"),
        ]
        agent.begin()
        target = "/v1/explain?target=workload/default/api"
        assert eventually(lambda: policies(api) == {OURS}), agent.client.get(target)
        lab.cluster.kill("kubelet")
        lab.node.start_kubelet()
        lab.cluster.wait("the kubelet", lambda: lab.cluster.usable_nodes() >= 1)
        before = [used(hog) for hog in hogs]
        assert eventually(lambda: all(used(hog) > was for hog, was in zip(hogs, before, strict=True)))
        assert eventually(lambda: policies(api) == {OURS})
        assert [policies(hog) for hog in hogs] == [{FAIR}, {FAIR}]
        budget = api / "cpu.rt_runtime_us"
        agent.client.post("/v1/revert", {})
        assert policies(api) == {FAIR}
        assert not budget.exists() or budget.read_text() == "0\n"


def test_a_namespace_that_nobody_trusts_has_no_real_time(lab: Installed, agent: PodAgent) -> None:
    api = container(lab, lab.node.run("api", labels={QOS: "realtime"}, requests={"cpu": "300m"}), "api")
    agent.begin()
    assert eventually(lambda: "api" in agent.workloads())
    assert policies(api) == {FAIR}
    assert agent.workloads()["api"]["status"]["tier"] != "reserved"
