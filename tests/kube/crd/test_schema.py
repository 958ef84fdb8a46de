"""What an API server alone refuses of all that `policy/validation/validate.py` does; the rest is the webhook's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from j10ce.model.catalogue import KINDS
from j10ce.model.schema import decode, encode
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.validate import validate
from tests.kube.manifests import CLONE, DEFINITIONS, built, install_crds
from tests.kubectl.kubectl import Kubectl, policy
from tests.lab.kube.cluster import Answer, Cluster, running
from tests.lab.kube.kubernetes import Version
from tests.policy.validation.test_validate import ROWS, edited

PROMISE = "MinimalReservationPolicy"
MISTAKES: list[Any] = [row for row in ROWS if row[0] not in ("Workload", "Credential")]
OUT_OF_REACH = {  # of any schema: sums and orders of amounts, keys of maps, values that only a knob explains
    "metadata.labels.j10ce.io/ignore {'j10ce.io/ignore': 'yes'}",
    "metadata.namespace default",
    "spec.knobs[1] ['cpu.max', 'cpu.turbo']",
    "spec.labels.a/b/c {'a/b/c': 'd'}",
    "spec.minimum {'cpu': '0'}",
    "spec.minimum.cpu {'cpu': '1Gi'}",
    "spec.network.egress.floor 2Gbit",
    "spec.network.floor 2Gbit",
    "spec.network.ingress.floor {'floor': '30%', 'ceiling': '20%'}",
    "spec.selector.matchLabels.a b {'a b': 'c'}",
    *(f"spec.target {target}" for target in ("workload/other/web", "part/other/web/app", "node", "group/system.slice")),
    *(f"spec.value {value}" for value in ("fast", "5%", "10", "['cpu.idle']", "['cpu.weight']", "['cpuset.cpus']")),
}
BETWEEN_FIELDS = {  # what the rules of deploy/default add
    "metadata.name guaranteedpro",
    "spec.cache.llcStartPercent 100",
    "spec.cache.llcStartPercent 50",
    "spec.cpu.bind spread",
    "spec.cpu.idle sensitive",
    "spec.cpu.latency True",
    "spec.cpu.pinning besteffort",
    "spec.cpu.suppressible system",
    "spec.knobs[2] ['cpu.max', 'cpu.weight', 'cpu.max']",
    "spec.lending.within {'within': '5s'}",
    "spec.memory.lowPercent 50",
    "spec.minimum.cpu {'cpu': '5%'}",
    "spec.nodeSelector.matchExpressions[0].values [{'key': 'a', 'operator': 'Exists', 'values': ['b']}]",
    "spec.selector.matchExpressions[0].values [{'key': 'a', 'operator': 'In'}]",
    "spec.value group/",
}
FINE: list[tuple[str, dict[str, Any]]] = [  # the edges of every range and spelling
    ("QoSProfile", {"spec__cpu": {"weight": 2, "burst": "100%", "idle": True}, "spec__tier": "besteffort"}),
    ("QoSProfile", {"spec__cpu": {"weight": 262144, "burst": "0.5%", "pinning": "exclusive"}, "spec__tier": "system"}),
    ("QoSProfile", {"spec__memory": {"minPercent": 0, "lowPercent": 100, "oomPriority": -1000}}),
    ("QoSProfile", {"spec__memory": {"throttlingPercent": 100, "oomPriority": 1000}}),
    ("QoSProfile", {"spec__memory__reclaim": {"enabled": True, "targetPressure": 0.5}}),
    ("QoSProfile", {"spec__network": {"class": "critical", "floor": "100Mbit", "ceiling": 10**9}}),
    ("QoSProfile", {"spec__network": {"floor": "5%", "ceiling": "100%"}}),
    ("QoSProfile", {"spec__io": {"weight": 1, "readLimit": "1.5Gi", "writeLimit": 1, "latency": "0.01s"}}),
    ("QoSProfile", {"spec__cache": {"llcStartPercent": 99, "memoryBandwidthPercent": 1}}),
    ("QoSProfile", {"spec__priority": -1_000_000, "spec__rollout": {"canaryPercent": 0, "paused": True, "attempt": 9}}),
    ("QoSProfile", {"spec__selector": {"matchLabels": {"example.com/a_b": "0", "b": "A-1_x.y"}}}),
    ("QoSProfile", {"metadata__name": "", "metadata__generateName": "gold-"}),
    (PROMISE, {"spec__minimum": {"cpu": "100%", "memory": "1e9", "network": "1Gbit"}}),
    (PROMISE, {"spec__minimum": {"cpu": 2, "diskRead": ".5M", "diskWrite": 0}, "spec__units": 10**6}),
    (PROMISE, {"spec__lending": {"mode": "Reclaimable", "within": "5s"}, "spec__ttl": "1d2h3m4.5s"}),
    (PROMISE, {"spec__selector__matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
    (PROMISE, {"spec__nodeSelector__matchExpressions": [{"key": "a/b", "operator": "DoesNotExist"}]}),
    ("Hold", {"spec__target": "group/system.slice/..ssh/.a", "spec__value": "50000"}),
    ("Hold", {"spec__target": "group/"}),
    ("Hold", {"spec__target": "node", "spec__node": "n1.example"}),
    ("Hold", {"spec__target": "part/default/web-0.x/app", "spec__expires": "2030-01-01T00:00:00.5+02:00"}),
    ("NodeStrategy", {"spec": {"suppress": {"mode": "buffer", "bufferCpus": "500m", "minPercent": 0}, "priority": -9}}),
    ("NodeStrategy", {"spec": {"burst": {"staticPercent": 10_000, "quotaPercent": 100, "period": "1h"}}}),
    ("NodeStrategy", {"spec__profiles": {"be": {"cpu": {"weight": 2, "idle": False}, "memory": {"minPercent": 5}}}}),
    ("NodeStrategy", {"spec__eviction": {"cpu": {"satisfactionLowerPercent": 9, "satisfactionUpperPercent": 9}}}),
    ("NodeStrategy", {"spec__hostApplications": [{"name": "a.b", "cgroup": "x/..y/z.service", "priority": "free"}]}),
    ("NodeStrategy", {"spec__overcommit": {"memory": {"by": "request", "batchPercent": 1000}, "difference": 1}}),
    ("NodeStrategy", {"spec": {"normalization": {"ratio": 1.5}, "interference": {"mode": "off"}}}),
    ("NodeQoS", {"spec__labels": {"zone": "a"}, "spec__unschedulable": True}),
    ("PolicyRevision", {"revision": 2**53, "data": {"anything": [{"goes": None}]}}),
]  # fmt: skip


def test_the_schema_refuses_every_mistake_within_one_field(crds: Cluster) -> None:
    assert let_through(crds) == OUT_OF_REACH | BETWEEN_FIELDS


def test_rules_refuse_mistakes_between_fields(ruled: Cluster) -> None:
    assert let_through(ruled) == OUT_OF_REACH


@pytest.fixture(scope="module")
def ruled(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane with the CRDs of deploy/."""
    if version == "old":
        pytest.skip("Unsupported: rules in CEL need Kubernetes 1.25")
    with running(tmp_path_factory.mktemp("ruled"), version) as cluster:
        made = built(CLONE / "deploy")
        install_crds(cluster, [definition for definition in made if definition["kind"] == "CustomResourceDefinition"])
        yield cluster


@pytest.mark.parametrize(("kind", "edits"), FINE, ids=str)
def test_what_is_right_is_taken(crds: Cluster, kind: str, edits: dict[str, object]) -> None:
    at_home = {"metadata__namespace": "j10ce-system"} if kind == "Hold" else {}
    assert validate(decode(edited(kind, {**at_home, **edits}))) == []
    create(crds, edited(kind, edits))


def test_a_label_may_be_empty(crds: Cluster, version: Version) -> None:
    if version == "old":
        pytest.skip("Unsupported: built with a newer Go, v1.20.2 takes an empty text for none")
    create(crds, edited("QoSProfile", {"spec__selector": {"matchLabels": {"a": ""}}}))


def test_history_is_not_rewritten(ruled: Cluster) -> None:
    path = "/apis/j10ce.io/v1alpha1/namespaces/default/policyrevisions"
    made = edited("PolicyRevision", {"revision": 3, "data": {"minimum": {"cpu": "1"}}})
    made["metadata"] = {"name": "db-3", "namespace": "default"}
    ruled.call("POST", path, made)
    for edit in ({"data": {"minimum": {"cpu": "9"}}}, {"data": {"minimum": {"memory": "1Gi"}}}, {"revision": 4}):
        with pytest.raises(Answer, match="history is not rewritten"):
            ruled.call("PATCH", f"{path}/db-3", edit, content="application/merge-patch+json")
    labelled = {"metadata": {"labels": {"a": "b"}}}
    ruled.call("PATCH", f"{path}/db-3", labelled, content="application/merge-patch+json")
    ruled.call("DELETE", f"{path}/db-3")


PLAIN = ("string", "integer", "boolean")


@pytest.mark.parametrize("name", sorted({kind for kind, _ in FINE}))
def test_objects_are_selected_by_every_column_that_is_one_word_or_number(ruled: Cluster, name: str) -> None:
    """As on a manager of our own, but for amounts and conditions, of which an API server selects none."""
    kind = KINDS[name]
    (version,) = ruled.call("GET", f"{DEFINITIONS}/{kind.plural}.j10ce.io")["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    taken = {column.path: selects(ruled, kind.plural, column.path) for column in kind.columns}
    assert taken == {path: shape(properties, path).get("type") in PLAIN for path in taken}
    assert True in taken.values()


def shape(properties: Any, path: str) -> Any:
    first, _, rest = path.partition(".")
    below = properties.get(first, {})
    return shape(below.get("properties", {}), rest) if rest else below


def selects(cluster: Cluster, plural: str, path: str) -> bool:
    try:
        cluster.call("GET", f"/apis/j10ce.io/v1alpha1/{plural}?fieldSelector={path}%3Dnobody-has-this")
    except Answer as answer:
        if "field label not supported" not in str(answer):
            raise
        return False
    return True


def test_a_policy_is_selected_by_its_units_and_its_phase(ruled: Cluster) -> None:
    path = "/apis/j10ce.io/v1alpha1/namespaces/default/minimalreservationpolicies"
    for units in (2, 3):
        made = edited("MinimalReservationPolicy", {"spec__units": units})
        made["metadata"] = {"name": f"units-{units}", "namespace": "default"}
        ruled.call("POST", path, made)

    def chosen(selector: str) -> list[str]:
        return sorted(o["metadata"]["name"] for o in ruled.call("GET", f"{path}?fieldSelector={selector}")["items"])

    assert chosen("spec.units%3D2") == ["units-2"]
    assert chosen("spec.units%21%3D2,status.phase%3DPending") == ["units-3"]
    assert chosen("status.phase%3DActive") == []
    for units in (2, 3):
        ruled.call("DELETE", f"{path}/units-{units}")


def test_rules_take_what_is_right(ruled: Cluster) -> None:
    for kind, edits in FINE:
        create(ruled, edited(kind, edits))


@pytest.mark.parametrize("name", [profile.metadata.name for profile in builtin()])
def test_the_api_server_takes_our_own_profiles(crds: Cluster, name: str) -> None:
    (profile,) = (profile for profile in builtin() if profile.metadata.name == name)
    made = create(crds, json.loads(encode(profile)))
    made["metadata"] = {"name": name, "labels": made["metadata"]["labels"]}
    assert decode(made) == profile, "what the API server adds are the model's own defaults"


def test_defaults_are_those_of_the_model(crds: Cluster) -> None:
    made = create(crds, edited("QoSProfile", {"spec": {"tier": "standard", "rollout": {}}}))
    assert made["spec"] == {
        "tier": "standard",
        "priority": 0,
        "rollout": {"canaryPercent": 100, "paused": False, "stopOnFailures": True, "attempt": 0},
        "cpu": {"latency": "normal", "pinning": "none", "idle": False, "coreSched": False, "suppressible": False},
    }
    made = create(crds, edited("MinimalReservationPolicy", {"spec": {"minimum": {"cpu": 1}}}))
    assert made["spec"] == {"minimum": {"cpu": 1}, "units": 0, "lending": {"mode": "None"}}
    assert create(crds, edited("NodeQoS", {}))["spec"] == {"unschedulable": False, "disarmed": False}


def test_fields_that_nobody_knows_are_refused_by_kubectl_and_dropped_by_the_server(
    crds: Cluster, kubectl: Kubectl
) -> None:
    known = (
        f"io.j10ce.v1alpha1.{PROMISE}"  # kubectl reads it there; it is published a while after the kind can be written
    )
    crds.wait("the schema for kubectl", lambda: known in crds.call("GET", "/openapi/v2")["definitions"])
    assert "unitz" in kubectl("create", "-f", "-", given=policy("db", unitz=3), code=1)
    assert "unitz" not in create(crds, edited(PROMISE, {"spec__unitz": 3}))["spec"]


def let_through(cluster: Cluster) -> set[str]:
    return {f"{path} {next(iter(edits.values()))}" for kind, edits, path in MISTAKES if takes(cluster, kind, edits)}


def takes(cluster: Cluster, kind: str, edits: dict[str, object]) -> bool:
    try:
        create(cluster, edited(kind, edits))
    except Answer as refusal:
        if refusal.status in (400, 422):
            return False
        raise
    return True


def create(cluster: Cluster, obj: dict[str, Any]) -> dict[str, Any]:
    """As the API server would store it; nothing is stored."""
    kind = KINDS[obj["kind"]]
    where = "namespaces/default/" if kind.namespaced else ""
    kept = {key: value for key, value in obj["metadata"].items() if key != "creationTimestamp"}
    if kind.namespaced:
        kept = {"namespace": "default", **kept}
        if kept["namespace"] == "j10ce-system":  # which is not there; rules of a CRD do not see it
            kept["namespace"] = "default"
    made: dict[str, Any] = cluster.call(
        "POST", f"/apis/j10ce.io/v1alpha1/{where}{kind.plural}?dryRun=All", obj | {"metadata": kept}
    )
    return made
