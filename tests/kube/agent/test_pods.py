"""Real pods on a real node: their cgroups show what policies promise, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

from tests.agent.process import eventually
from tests.kube.agent.installed import Installed, PodAgent

QOS = "j10ce.io/qos-profile"


def read(group: Path, name: str = "cpu.shares") -> int:
    return int((group / name).read_text())


def settings(group: Path) -> dict[str, str]:
    """Everything that a kubelet or we could set."""
    names = ("cpu.shares", "cpu.cfs_quota_us", "cpu.idle", "cpu.cfs_burst_us")
    return {str(f): f.read_text() for name in names for f in group.rglob(name)}


def test_a_pod_with_a_reservation_gets_the_weight_its_floor_needs(lab: Installed, agent: PodAgent) -> None:
    group = lab.node.cgroup(lab.reserved())
    assert read(group) == 102
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    status = agent.workloads()["db"]["status"]
    assert status["floor"]["cpu"] == "500m"
    assert status["cgroup"] == str(group.relative_to("/sys/fs/cgroup/cpu"))


def test_a_pod_that_starts_later_has_its_knobs_written_when_its_cgroup_exists(lab: Installed, agent: PodAgent) -> None:
    agent.begin()
    uid = lab.reserved()
    assert eventually(lambda: read(lab.node.cgroup(uid)) > 102)


def test_nothing_is_written_for_pods_that_nobody_chose(lab: Installed, agent: PodAgent) -> None:
    uids = [
        lab.node.run(
            "guaranteed", requests={"cpu": "100m", "memory": "32Mi"}, limits={"cpu": "100m", "memory": "32Mi"}
        ),
        lab.node.run("burstable", requests={"cpu": "50m"}),
        lab.node.run("besteffort"),
        lab.node.run("ignored", labels={QOS: "ls", "j10ce.io/ignore": "true"}, limits={"cpu": "200m"}),
    ]
    before = [settings(lab.node.cgroup(uid)) for uid in uids]
    chosen = lab.node.run("chosen", labels={QOS: "be"})
    agent.begin()
    assert eventually(lambda: (lab.node.cgroup(chosen) / "cpu.idle").read_text() == "1\n")
    assert [settings(lab.node.cgroup(uid)) for uid in uids] == before
    tiers = {name: w["status"]["tier"] for name, w in agent.workloads().items()}
    assert tiers == {
        "guaranteed": "sensitive",
        "burstable": "standard",
        "besteffort": "besteffort",
        "ignored": "standard",
        "chosen": "besteffort",
    }


def test_what_a_pod_had_comes_back_when_its_policy_goes(lab: Installed, agent: PodAgent) -> None:
    group = lab.node.cgroup(lab.reserved())
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    lab.cluster.call("DELETE", "/apis/j10ce.io/v1alpha1/namespaces/default/minimalreservationpolicies/db")
    assert eventually(lambda: read(group) == 102)


def test_a_deleted_pod_is_forgotten(lab: Installed, agent: PodAgent) -> None:
    lab.node.run("web", labels={QOS: "ls"})
    agent.begin()
    assert agent.knows("web")
    lab.node.delete("web")
    assert eventually(lambda: "web" not in agent.workloads())


def test_the_node_is_reported(lab: Installed, agent: PodAgent) -> None:
    lab.policy("db", minimum={"cpu": "100m"})
    lab.node.run("db")
    agent.begin()
    assert eventually(lambda: agent.status().get("reserved", {}).get("cpu") == "100m")
    assert agent.status()["armed"] is True
    assert agent.client.get("/v1/status")["server"] == lab.cluster.url
