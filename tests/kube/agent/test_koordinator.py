"""Pods in Koordinator's words on a real node: their cgroups show what the classes promise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.process import eventually
from tests.kube.agent.installed import Installed, PodAgent

CLASS = "koordinator.sh/qosClass"
NAMESPACE = "/api/v1/namespaces/default"
WHOLE = {"cpu": "1", "memory": "64Mi"}


@pytest.fixture
def speaking(lab: Installed, agent: PodAgent) -> PodAgent:
    """An agent that understands them."""
    agent.configure(kubelet=f"https://127.0.0.1:{lab.node.kubelet_port}", dialects=["koordinator"])
    return agent


@contextmanager
def trusted(lab: Installed) -> Iterator[None]:
    def say(word: str | None) -> None:
        body = {"metadata": {"labels": {"j10ce.io/trusted": word}}}
        lab.cluster.call("PATCH", NAMESPACE, body, content="application/merge-patch+json")

    say("true")
    try:
        yield
    finally:
        say(None)


def read(folder: Path, name: str) -> str:
    return (folder / name).read_text().strip()


def notes(agent: PodAgent, name: str) -> str:
    return str(agent.client.get(f"/v1/explain?target=workload/default/{name}"))


def test_each_class_has_its_files(lab: Installed, speaking: PodAgent) -> None:
    with trusted(lab):
        lsr = lab.node.run("lsr-pod-example", labels={CLASS: "LSR"}, requests=WHOLE, limits=WHOLE)
        ls = lab.node.run("ls-pod-example", labels={CLASS: "LS"}, requests={"cpu": "200m"}, limits={"cpu": "400m"})
        be = lab.node.run("be-pod-example", labels={CLASS: "BE"})
        system = lab.node.run("system-pod-example", labels={CLASS: "SYSTEM"}, requests={"cpu": "100m"})
        speaking.begin()
        assert eventually(lambda: read(lab.node.cgroup(be), "cpu.idle") == "1")
        assert eventually(lambda: len(read(lab.node.cgroup(lsr, "cpuset"), "cpuset.cpus")) == 1)
        assert eventually(lambda: int(read(lab.node.cgroup(ls), "cpu.cfs_burst_us")) == 40_000)
        tiers = {name: w["status"]["tier"] for name, w in speaking.workloads().items()}
        assert tiers == {
            "lsr-pod-example": "reserved",
            "ls-pod-example": "sensitive",
            "be-pod-example": "besteffort",
            "system-pod-example": "system",
        }
        assert "kubepods" in str(lab.node.cgroup(system))


def test_a_class_that_needs_trust_is_refused_elsewhere_and_said(lab: Installed, speaking: PodAgent) -> None:
    lse = lab.node.run("lse-pod-example", labels={CLASS: "LSE"}, requests=WHOLE, limits=WHOLE)
    before = read(lab.node.cgroup(lse, "cpuset"), "cpuset.cpus")
    speaking.begin()
    assert speaking.knows("lse-pod-example")
    assert eventually(lambda: speaking.workloads()["lse-pod-example"]["status"].get("tier") == "sensitive")
    assert read(lab.node.cgroup(lse, "cpuset"), "cpuset.cpus") == before
    assert "j10ce.io/trusted=true" in notes(speaking, "lse-pod-example")


def test_without_the_dialect_the_words_mean_nothing(lab: Installed, agent: PodAgent) -> None:
    be = lab.node.run("be-pod-example", labels={CLASS: "BE"})
    chosen = lab.node.run("ours", labels={"j10ce.io/qos-profile": "be"})
    agent.begin()
    assert eventually(lambda: read(lab.node.cgroup(chosen), "cpu.idle") == "1")
    assert read(lab.node.cgroup(be), "cpu.idle") == "0"
