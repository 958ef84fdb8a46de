"""What a NodeStrategy may say: every range, every pair, and what an answer tells."""

from __future__ import annotations

from typing import Any

import pytest

from j10ce.errors import Invalid
from j10ce.model.kinds import NodeStrategy
from j10ce.model.schema import convert, decode
from j10ce.policy.strategy import ASCENDING
from j10ce.policy.validation.strategy import RANGES, SOME_TIME
from j10ce.policy.validation.validate import validate


def spec(path: str, value: object) -> dict[str, Any]:
    *above, last = path.split(".")
    made: dict[str, Any] = {last: value}
    for step in reversed(above):
        made = {step: made}
    return made


def problems(said: dict[str, Any]) -> dict[str, str]:
    raw = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeStrategy", "metadata": {"name": "a"}, "spec": said}
    return {f.path: str(f) for f in validate(decode(raw))}


@pytest.mark.parametrize("path", RANGES)
def test_a_number_is_within_its_range(path: str) -> None:
    low, high = RANGES[path]
    assert not problems(spec(path, low))
    assert not problems(spec(path, high))
    for beyond in (low - 1, high + 1):
        said_of = problems(spec(path, beyond))
        assert f"use {low:g} to {high:g}" in said_of[f"spec.{path}"]
        assert str(int(beyond)) in said_of[f"spec.{path}"]


@pytest.mark.parametrize("path", SOME_TIME)
def test_a_duration_is_longer_than_nothing(path: str) -> None:
    assert not problems(spec(path, "30s"))
    assert "no time at all" in problems(spec(path, "0s"))[f"spec.{path}"]


@pytest.mark.parametrize("pair", ASCENDING, ids=lambda pair: pair.low)
def test_a_lower_bound_is_below_the_upper_one(pair: Any) -> None:
    *above, low = pair.low.split(".")
    high = pair.high.rpartition(".")[2]

    def both(lower: int, upper: int) -> dict[str, str]:
        return problems(spec(".".join(above), {low: lower, high: upper}))

    assert not both(60, 70)
    assert both(70, 60).keys() == {f"spec.{pair.low}"}
    assert bool(both(60, 60)) is not pair.equal


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"suppress": {"bufferCpus": "50%"}}, "spec.suppress.bufferCpus"),
        ({"suppress": {"bufferCpus": "100Mbit"}}, "spec.suppress.bufferCpus"),
        ({"suppress": {"bufferCpus": "10000000"}}, "spec.suppress.bufferCpus"),
        ({"systemCpus": {"cpus": "a"}}, "spec.systemCpus.cpus"),
        ({"systemCpus": {"cpus": "3-1"}}, "spec.systemCpus.cpus"),
        ({"systemCpus": {"cpus": " "}}, "spec.systemCpus.cpus"),
        ({"overcommit": {"difference": 0.0}}, "spec.overcommit.difference"),
        ({"overcommit": {"difference": 1.5}}, "spec.overcommit.difference"),
        ({"normalization": {"ratio": 0.9}}, "spec.normalization.ratio"),
        ({"priority": 1_000_001}, "spec.priority"),
        ({"rollout": {"canaryPercent": 101}}, "spec.rollout.canaryPercent"),
        ({"nodeSelector": {"matchLabels": {"a b": "c"}}}, "spec.nodeSelector.matchLabels.a b"),
        ({"profiles": {"be": {"cpu": {"weight": 0}}}}, "spec.profiles.be.cpu.weight"),
        ({"profiles": {"be": {"cpu": {"burst": "2"}}}}, "spec.profiles.be.cpu.burst"),
        ({"profiles": {"be": {"memory": {"minPercent": 101}}}}, "spec.profiles.be.memory.minPercent"),
        ({"profiles": {"be": {"memory": {"minPercent": 9, "lowPercent": 8}}}}, "spec.profiles.be.memory.lowPercent"),
        ({"profiles": {"be": {"cache": {"llcStartPercent": 100}}}}, "spec.profiles.be.cache.llcStartPercent"),
        ({"profiles": {"BestEffort": {}}}, "spec.profiles.BestEffort"),
        ({"profiles": {"no name": {}}}, "spec.profiles.no name"),
        ({"hostApplications": [{"name": "A", "cgroup": "x"}]}, "spec.hostApplications[0].name"),
        *(
            ({"hostApplications": [{"name": "a", "cgroup": path}]}, "spec.hostApplications[0].cgroup")
            for path in ("", "/x", "x/", "../x", "x/../y", "x//y", ".", "x\ny")
        ),
        (
            {"hostApplications": [{"name": "a", "cgroup": "x"}, {"name": "a", "cgroup": "y"}]},
            "spec.hostApplications[1].name",
        ),
        pytest.param({"sysctls": {"schedFeatures": ["NO_"]}}, "spec.sysctls.schedFeatures", id="no name of a feature"),
        pytest.param(
            {"sysctls": {"schedFeatures": [""]}}, "spec.sysctls.schedFeatures", id="a feature without letters"
        ),
        pytest.param({"sysctls": {"schedFeatures": ["A", "NO_A"]}}, "spec.sysctls.schedFeatures", id="on and off"),
        pytest.param({"network": {"links": {"eth0": {"egress": "0"}}}}, "spec.network.links.eth0.egress", id="no rate"),
        pytest.param(
            {"network": {"links": {"eth0": {"ingress": "101%"}}}}, "spec.network.links.eth0.ingress", id="over"
        ),
        pytest.param({"network": {"links": {"a b": {"managed": True}}}}, "spec.network.links.a b", id="no link's name"),
        pytest.param(
            {"io": {"disks": {"sda": {"readBps": "5%"}}}}, "spec.io.disks.sda.readBps", id="percent of a disk"
        ),
        pytest.param({"io": {"disks": {"sda": {"writeIops": 0}}}}, "spec.io.disks.sda.writeIops", id="no operation"),
        pytest.param({"io": {"disks": {"/dev/sda": {"managed": True}}}}, "spec.io.disks./dev/sda", id="a path"),
        pytest.param(
            {"profiles": {"be": {"network": {"floor": "2Gbit", "ceiling": "1Gbit"}}}},
            "spec.profiles.be.network.floor",
            id="a floor above the ceiling",
        ),
        pytest.param({"sysctls": {"schedIdleSaverWmark": -1}}, "spec.sysctls.schedIdleSaverWmark", id="no time"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_path(said: dict[str, Any], path: str) -> None:
    assert problems(said).keys() == {path}


def test_whatever_is_wrong_is_told_at_once() -> None:
    assert len(problems({"suppress": {"minPercent": -1}, "burst": {"staticPercent": 0, "period": "0s"}})) == 3


@pytest.mark.parametrize(
    ("said", "path", "hint"),
    [
        ({"sysctls": {"swappiness": 60}}, "spec.sysctls.swappiness", "correct its spelling"),
        (
            {"suppress": {"mode": "cfsQuota"}},
            "spec.suppress.mode",
            "did you mean quota? use one of auto, buffer, cpuset, quota",
        ),
        ({"interference": {"mode": False}}, "spec.interference.mode", "put it in quotes"),
        ({"hostApplications": [{"name": "a"}]}, "spec.hostApplications[0].cgroup", "it is required"),
    ],
)
def test_what_has_no_such_shape_is_refused_with_what_to_do(said: dict[str, Any], path: str, hint: str) -> None:
    with pytest.raises(Invalid) as refused:
        convert({"metadata": {"name": "a"}, "spec": said}, NodeStrategy)
    (finding,) = refused.value.findings
    assert finding.path == path
    assert hint in str(finding)
