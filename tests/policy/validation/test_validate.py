"""Every semantic mistake is a finding with its path; what is right has none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.model.kinds import Object
from j10ce.model.knob import KNOBS
from j10ce.model.schema import decode, plain
from j10ce.policy.validation import syntax
from j10ce.policy.validation.validate import knobs, unknown_knob, validate
from j10ce.testing.build import hold, profile, reservation, strategy, workload
from tests.model.generate import objects

GOOD: dict[str, dict[str, Any]] = {
    "QoSProfile": plain(profile("custom")),
    "MinimalReservationPolicy": plain(reservation("db", cpu="1", memory="1Gi")),
    "Hold": plain(hold("workload/default/web", "cpu.max")),
    "NodeStrategy": plain(strategy("pool", {"suppress": {"mode": "quota"}})),
    "NodeQoS": {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n1"}},
    "Workload": {"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": {"name": "web"}},
    "PolicyRevision": {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "PolicyRevision",
        "metadata": {"name": "db-1"},
        "revision": 1,
        "data": {},
    },
    "Credential": {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "Credential",
        "metadata": {"name": "alice"},
        "spec": {"role": "editor", "hash": f"sha256:{'0a' * 32}"},
    },
}


def paths(kind: str, **edits: object) -> list[str]:
    return [f.path for f in validate(decode(edited(kind, edits)))]


def edited(kind: str, edits: dict[str, object]) -> dict[str, Any]:
    """`spec__cpu__weight=1` sets spec.cpu.weight."""
    raw: dict[str, Any] = decode_copy(GOOD[kind])
    for path, value in edits.items():
        here = raw
        *steps, last = path.split("__")
        for step in steps:
            here = here.setdefault(step, {})
        here[last] = value
    return raw


def decode_copy(raw: Any) -> Any:
    return {k: decode_copy(v) for k, v in raw.items()} if isinstance(raw, dict) else raw


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_object_has_no_findings(kind: str) -> None:
    assert paths(kind) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        ".",
        "a/b",
        "../x",
        "Web",
        "a_b",
        "-a",
        "a-",
        "a..b",
        "a" * 254,
        "a\n",
        "a b",
        "é",
        "a\0",
        "%2e",
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", GOOD)
def test_a_name_that_could_escape_a_path_is_refused(kind: str, name: str) -> None:
    assert paths(kind, metadata__name=name) == ["metadata.name"]


@pytest.mark.parametrize("name", ["a", "a-b.c9", "0", "a" * 100, "ip-10-0-0-1.ec2.internal"])
def test_a_name_of_dns_is_fine(name: str) -> None:
    assert paths("NodeQoS", metadata__name=name) == []


def test_a_workloads_name_leaves_room_for_its_namespace() -> None:
    long = ".".join(["a" * 60] * 3)
    assert paths("Workload", metadata__name=long) == ["metadata.name"]
    assert paths("QoSProfile", metadata__name=long) == []


PROFILE = [
    ({"spec__cpu__weight": 1}, "spec.cpu.weight"),
    ({"spec__cpu__weight": 262145}, "spec.cpu.weight"),
    ({"spec__cpu__burst": "2"}, "spec.cpu.burst"),
    ({"spec__cpu__burst": "101%"}, "spec.cpu.burst"),
    ({"spec__tier": "sensitive", "spec__cpu__idle": True}, "spec.cpu.idle"),
    ({"spec__tier": "system", "spec__cpu__suppressible": True}, "spec.cpu.suppressible"),
    ({"spec__cpu__idle": True, "spec__cpu__latency": "realtime"}, "spec.cpu.latency"),
    ({"spec__tier": "besteffort", "spec__cpu__pinning": "exclusive"}, "spec.cpu.pinning"),
    ({"spec__cpu__bind": "spread"}, "spec.cpu.bind"),
    ({"spec__memory__minPercent": 101}, "spec.memory.minPercent"),
    ({"spec__memory__lowPercent": -1}, "spec.memory.lowPercent"),
    ({"spec__memory__minPercent": 50, "spec__memory__lowPercent": 40}, "spec.memory.lowPercent"),
    ({"spec__memory__throttlingPercent": 101}, "spec.memory.throttlingPercent"),
    ({"spec__memory__oomPriority": 1001}, "spec.memory.oomPriority"),
    ({"spec__memory__reclaim": {"targetPressure": 101.0}}, "spec.memory.reclaim.targetPressure"),
    ({"spec__network__floor": "2Gbit", "spec__network__ceiling": "1Gbit"}, "spec.network.floor"),
    ({"spec__network__floor": "101%"}, "spec.network.floor"),
    ({"spec__network__ceiling": "0"}, "spec.network.ceiling"),
    ({"spec__network__egress__floor": "2Gbit", "spec__network__ceiling": "1Gbit"}, "spec.network.egress.floor"),
    ({"spec__network__ingress": {"floor": "30%", "ceiling": "20%"}}, "spec.network.ingress.floor"),
    ({"spec__io__readLimit": "100Mbit"}, "spec.io.readLimit"),
    ({"spec__io__writeIopsLimit": 0}, "spec.io.writeIopsLimit"),
    ({"spec__io__weight": 0}, "spec.io.weight"),
    ({"spec__io__readLimit": "5%"}, "spec.io.readLimit"),
    ({"spec__io__writeLimit": "0"}, "spec.io.writeLimit"),
    ({"spec__io__latency": "0s"}, "spec.io.latency"),
    ({"spec__cache__llcStartPercent": 50, "spec__cache__llcEndPercent": 50}, "spec.cache.llcStartPercent"),
    ({"spec__cache__llcStartPercent": 100}, "spec.cache.llcStartPercent"),
    ({"spec__cache__llcEndPercent": 101}, "spec.cache.llcEndPercent"),
    ({"spec__cache__memoryBandwidthPercent": 0}, "spec.cache.memoryBandwidthPercent"),
    ({"spec__priority": 10**7}, "spec.priority"),
    ({"spec__rollout__canaryPercent": 101}, "spec.rollout.canaryPercent"),
    ({"spec__rollout__attempt": -1}, "spec.rollout.attempt"),
    ({"spec__selector__matchLabels": {"a b": "c"}}, "spec.selector.matchLabels.a b"),
    ({"spec__namespaceSelector__matchLabels": {"a": "-"}}, "spec.namespaceSelector.matchLabels.a"),
    ({"metadata__name": "guaranteedpro"}, "metadata.name"),
    ({"metadata__namespace": "default"}, "metadata.namespace"),
    ({"metadata__labels": {"j10ce.io/ignore": "yes"}}, "metadata.labels.j10ce.io/ignore"),
    ({"metadata__labels": {"-/x": "1"}}, "metadata.labels.-/x"),
    ({"metadata__annotations": {"": "1"}}, "metadata.annotations."),
    ({"metadata__annotations": {"a": "x" * 150_000, "b": "x" * 150_000}}, "metadata.annotations"),
    ({"metadata__name": "", "metadata__generateName": "A-"}, "metadata.generateName"),
]
RESERVATION = [
    ({"spec__minimum": {}}, "spec.minimum"),
    ({"spec__minimum": {"cpu": "0"}}, "spec.minimum"),
    ({"spec__minimum": {"cpu": "101%"}}, "spec.minimum.cpu"),
    ({"spec__minimum": {"cpu": "5%"}, "spec__units": 1}, "spec.minimum.cpu"),
    ({"spec__minimum": {"cpu": "1Gi"}}, "spec.minimum.cpu"),
    ({"spec__units": -1}, "spec.units"),
    ({"spec__units": 10**7}, "spec.units"),
    ({"spec__ttl": "0s"}, "spec.ttl"),
    ({"spec__lending": {"within": "5s"}}, "spec.lending.within"),
    ({"spec__lending": {"mode": "Reclaimable", "within": "0s"}}, "spec.lending.within"),
    ({"metadata__namespace": "a.b"}, "metadata.namespace"),
    (
        {"spec__selector__matchExpressions": [{"key": "a", "operator": "In"}]},
        "spec.selector.matchExpressions[0].values",
    ),
    (
        {"spec__nodeSelector__matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        "spec.nodeSelector.matchExpressions[0].values",
    ),
    (
        {"spec__selector__matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "/"]}]},
        "spec.selector.matchExpressions[0].values[1]",
    ),
]
RATES = [
    ({"spec__minimum": {name: "500kbit"}}, f"spec.minimum.{name}")
    for name in ("cpu", "memory", "diskRead", "diskWrite")
]
HOLD = [
    ({"spec__knobs": []}, "spec.knobs"),
    ({"spec__knobs": ["cpu.max", "cpu.turbo"]}, "spec.knobs[1]"),
    ({"spec__target": "workload/default"}, "spec.target"),
    ({"spec__target": "workload/default/../x"}, "spec.target"),
    ({"spec__target": "workload/default/.."}, "spec.target"),
    ({"spec__target": "group/a/../b"}, "spec.target"),
    ({"spec__target": "group//a"}, "spec.target"),
    ({"spec__target": "group/a\nb"}, "spec.target"),
    ({"spec__target": "pod/default/web"}, "spec.target"),
    ({"spec__target": ""}, "spec.target"),
    ({"spec__target": "group/", "spec__value": "max", "metadata__namespace": "j10ce-system"}, "spec.value"),
    ({"spec__target": "workload/other/web"}, "spec.target"),
    ({"spec__target": "part/other/web/app"}, "spec.target"),
    ({"spec__target": "workload/default/web", "metadata__namespace": "defaul"}, "spec.target"),
    ({"spec__target": "node"}, "spec.target"),
    ({"spec__target": "group/system.slice"}, "spec.target"),
    ({"spec__value": "fast"}, "spec.value"),
    ({"spec__value": "5%"}, "spec.value"),
    ({"spec__value": "10"}, "spec.value"),
    ({"spec__knobs": ["cpu.idle"], "spec__value": "0.5"}, "spec.value"),
    ({"spec__knobs": ["cpu.weight"], "spec__value": "max"}, "spec.value"),
    ({"spec__knobs": ["cpuset.cpus"], "spec__value": "3-1"}, "spec.value"),
    ({"spec__knobs": ["cpuset.cpus"], "spec__value": "0-4095,0-4095,0"}, "spec.value"),
    ({"spec__knobs": ["cpu.max", "cpu.weight", "cpu.max"]}, "spec.knobs[2]"),
    ({"spec__expires": "2026-01-01T00:00:00"}, "spec.expires"),
    ({"spec__why": " "}, "spec.why"),
    ({"spec__node": "a/b"}, "spec.node"),
]
OTHERS = [
    ("NodeQoS", {"spec__labels": {"a/b/c": "d"}}, "spec.labels.a/b/c"),
    ("Workload", {"spec__requests": {"cpu": "2"}, "spec__limits": {"cpu": "1"}}, "spec.requests.cpu"),
    ("Workload", {"spec__minimum": {"memory": "2Gi"}, "spec__limits": {"memory": "1Gi"}}, "spec.minimum.memory"),
    ("Workload", {"spec__requests": {"cpu": "5%"}}, "spec.requests.cpu"),
    ("Workload", {"spec__node": "a/b"}, "spec.node"),
    ("Workload", {"spec__parts": ["ok", "../up"]}, "spec.parts[1]"),
    ("PolicyRevision", {"revision": 0}, "revision"),
]
BOOTSTRAP = {"spec__role": "bootstrap", "spec__uses": 1, "spec__expires": "2030-01-01T00:00:00Z"}
CREDENTIAL = [
    ({"spec__hash": "0a" * 32}, "spec.hash"),
    ({"spec__hash": f"sha256:{'0A' * 32}"}, "spec.hash"),
    ({"spec__hash": f"sha256:{'0a' * 32}\n"}, "spec.hash"),
    ({"spec__role": "node"}, "spec.node"),
    ({"spec__role": "node", "spec__node": "a/b"}, "spec.node"),
    ({"spec__node": "n1"}, "spec.node"),
    ({"spec__uses": 1}, "spec.uses"),
    ({**BOOTSTRAP, "spec__uses": -1}, "spec.uses"),
    ({"spec__role": "bootstrap", "spec__uses": 1}, "spec.expires"),
    ({"spec__role": "bootstrap", "spec__expires": "2030-01-01T00:00:00Z"}, "spec.uses"),
    ({"spec__expires": "2030-01-01T00:00:00"}, "spec.expires"),
    ({"spec__formerHash": f"sha256:{'0a' * 32}"}, "spec.formerHash"),
    ({"spec__formerExpires": "2030-01-01T00:00:00Z"}, "spec.formerHash"),
]
ROWS = [
    *(("QoSProfile", edits, path) for edits, path in PROFILE),
    *(("MinimalReservationPolicy", edits, path) for edits, path in RESERVATION),
    *(("MinimalReservationPolicy", edits, path) for edits, path in RATES),
    *(("Hold", edits, path) for edits, path in HOLD),
    *(("Credential", edits, path) for edits, path in CREDENTIAL),
    *OTHERS,
]


@pytest.mark.parametrize(("kind", "edits", "path"), [pytest.param(*r, id=f"{n} {r[2]}") for n, r in enumerate(ROWS)])
def test_one_mistake_is_one_finding(kind: str, edits: dict[str, object], path: str) -> None:
    assert paths(kind, **edits) == [path]


@pytest.mark.parametrize(
    ("kind", "edits"),
    [
        ("QoSProfile", {"spec__cpu": {"weight": 2, "burst": "100%", "idle": True}, "spec__tier": "besteffort"}),
        ("QoSProfile", {"spec__rollout": {"canaryPercent": 10, "paused": True}}),
        ("QoSProfile", {"metadata__name": "", "metadata__generateName": "gold-"}),
        ("MinimalReservationPolicy", {"spec__minimum": {"cpu": "100%"}}),
        ("MinimalReservationPolicy", {"spec__lending": {"mode": "Reclaimable", "within": "5s"}, "spec__ttl": "7d"}),
        (
            "Hold",
            {
                "spec__target": "group/system.slice/ssh.service",
                "spec__value": "50000",
                "metadata__namespace": "j10ce-system",
            },
        ),
        ("Hold", {"spec__target": "group/", "metadata__namespace": "j10ce-system"}),
        ("Hold", {"spec__target": "node", "metadata__namespace": "j10ce-system"}),
        ("Hold", {"spec__target": "workload/default/web", "metadata__namespace": "j10ce-system"}),
        ("Hold", {"spec__target": "part/default/web/app"}),
        ("Hold", {"spec__knobs": ["memory.low"], "spec__value": "1Gi"}),
        ("Hold", {"spec__knobs": ["cpuset.cpus"], "spec__value": "0-3,8"}),
        ("Hold", {"spec__value": "max"}),
        ("Workload", {"spec__requests": {"cpu": "1"}, "spec__limits": {"cpu": "1"}, "spec__minimum": {"cpu": "10%"}}),
    ],
    ids=str,
)
def test_what_is_allowed_has_no_findings(kind: str, edits: dict[str, object]) -> None:
    assert paths(kind, **edits) == []


def test_all_mistakes_are_reported_at_once() -> None:
    edits = {path: value for row in (PROFILE[0], PROFILE[2], PROFILE[8], PROFILE[-2]) for path, value in row[0].items()}
    findings = validate(decode(edited("QoSProfile", edits)))
    assert {f.path for f in findings} == {PROFILE[0][1], PROFILE[2][1], PROFILE[8][1], PROFILE[-2][1]}
    assert all(f.problem for f in findings)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(objects())
def test_no_object_breaks_validation(obj: Object) -> None:
    assert all(f.path and f.problem for f in validate(obj))


@given(st.text())
def test_a_valid_name_is_one_step_of_a_path(text: str) -> None:
    if not list(syntax.name("name", text)):
        assert text not in ("", ".", "..")
        assert not set(text) & set("/\0\n")


def test_the_target_of_every_workload_is_a_target() -> None:
    assert list(syntax.target("t", workload("web").target)) == []


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("cpu.shares", "that is cpu.weight here, whatever the cgroup version"),
        ("memory.limit_in_bytes", "that is memory.max here, whatever the cgroup version"),
        ("cpu.weigth", "did you mean cpu.weight? use one of cpu.weight, cpu.idle"),
        ("net.egress.ceil@eth0", "did you mean net.egress.ceil[eth0]? what there is several times stands in brackets"),
        ("io.max.rbps:8:0", "did you mean io.max[8:0].rbps? "),
        ("disk", "use one of cpu.…, "),
    ],
)
def test_a_knob_by_its_name_on_v1_or_mistyped_is_answered_with_ours(typed: str, hint: str) -> None:
    assert unknown_knob("knob", typed).hint.startswith(hint)
    assert [f.hint for f in knobs("knobs", [typed])] == [unknown_knob("knob", typed).hint]
    assert typed not in KNOBS


def test_a_target_beyond_any_length_fills_no_cache() -> None:
    """Validation on an agent, in a webhook and in a manager remembers targets that many holds have."""
    syntax.is_target("workload/default/web")
    before = syntax._is_target.cache_info().currsize
    assert not any(syntax.is_target(f"workload/default/{n}{'y' * 100_000}") for n in range(3))
    assert syntax._is_target.cache_info().currsize == before
