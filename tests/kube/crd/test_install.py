"""The CRDs install on a real API server, and kubectl shows their objects as the table of kinds says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from j10ce.model.catalogue import KINDS
from tests.kube.manifests import BASES, DEFINITIONS
from tests.kubectl.kubectl import Kubectl, policy
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

API = "j10ce.io/v1alpha1"
STORED = sorted({"QoSProfile", "MinimalReservationPolicy", "NodeStrategy", "NodeQoS", "Hold", "PolicyRevision"})


def test_there_is_a_file_for_every_kind_that_kubernetes_stores() -> None:
    assert {file.name for file in BASES.iterdir()} == {f"j10ce.io_{KINDS[name].plural}.yaml" for name in STORED}


@pytest.mark.parametrize("name", STORED)
def test_the_definition_says_what_the_table_of_kinds_says(crds: Cluster, name: str) -> None:
    kind = KINDS[name]
    definition = crds.call("GET", f"{DEFINITIONS}/{kind.plural}.j10ce.io")
    names = definition["status"]["acceptedNames"]
    assert (names["plural"], tuple(names.get("shortNames") or ()), names["categories"]) == (
        kind.plural,
        kind.short,
        ["j10ce"],
    )
    assert definition["spec"]["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    (version,) = definition["spec"]["versions"]
    assert ("status" in version.get("subresources", {})) is (name != "PolicyRevision")


def test_every_listing_has_the_columns_of_the_table_of_kinds(crds: Cluster, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy("db"))
    kubectl("create", "-f", "-", given=hold("freeze"))
    plain = kubectl("get", "mrp").splitlines()
    assert plain[0].split() == ["NAME", "PHASE", "CPU", "MEMORY", "UNITS", "READY", "REASON", "AGE"]
    assert plain[1].split()[:3] == ["db", "Pending", "1m"]
    wide = kubectl("get", "mrp", "-o", "wide").splitlines()[0].split()
    assert wide == ["NAME", *(c.name for c in KINDS["MinimalReservationPolicy"].columns), "AGE"]
    assert '["cpu.max","memory.high"]' in kubectl("get", "holds")


def test_units_are_scaled_like_replicas(crds: Cluster, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy("db"))
    kubectl("scale", "mrp/db", "--replicas=3")
    assert kubectl.read("mrp", "db")["spec"]["units"] == 3


def test_a_node_tells_its_story_in_one_line(crds: Cluster, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", given={"apiVersion": API, "kind": "NodeQoS", "metadata": {"name": namespace}})
    assert kubectl("get", "nq", namespace).splitlines()[1].split()[:4] == [namespace, "false", "false", "0"]
    report(crds, namespace, armed=True, workloads=7, capacity={"cpu": "8", "memory": "32Gi"})
    output = kubectl("get", "nq", namespace, "-o", "wide").splitlines()[1].split()
    assert output[:7] == [namespace, "True", "false", "true", "7", "8", "32Gi"]
    assert output[-2].endswith("s"), "the heartbeat is shown as an age"
    kubectl("delete", "nq", namespace)


def test_names_for_people_find_objects(crds: Cluster, kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=policy("db"))
    for word in (
        "mrp",
        "minimalreservationpolicy",
        "minimalreservationpolicies",
        "minimalreservationpolicies.j10ce.io",
    ):
        assert kubectl("get", word, "db", "-o", "name").strip() == "minimalreservationpolicy.j10ce.io/db"
    assert "minimalreservationpolicy.j10ce.io/db" in kubectl("get", "j10ce", "-o", "name")


def test_explain_says_what_fields_mean(crds: Cluster, kubectl: Kubectl) -> None:
    assert "Bytes, such as 512Mi, 1Gi or 10%." in kubectl("explain", "mrp.spec.minimum")
    assert "How well it is protected" in kubectl("explain", "qosprofile.spec.tier")


def test_status_is_written_apart_from_spec(crds: Cluster, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", given=policy("db") | {"status": {"phase": "Active"}})
    path = f"/apis/{API}/namespaces/{namespace}/minimalreservationpolicies/db"
    made = crds.call("GET", path)
    assert made["status"]["phase"] == "Pending", "what a user says about it does not count"
    changed = {"spec": {"units": 3}, "status": {"phase": "Active"}}
    status = crds.call("PATCH", f"{path}/status", changed, content="application/merge-patch+json")
    assert (status["spec"]["units"], status["status"]["phase"]) == (0, "Active")
    assert status["metadata"]["generation"] == made["metadata"]["generation"]
    spec = crds.call("PATCH", path, {"spec": {"units": 3}}, content="application/merge-patch+json")
    assert (spec["spec"]["units"], spec["metadata"]["generation"]) == (3, made["metadata"]["generation"] + 1)


def test_two_writers_each_own_their_conditions(
    crds: Cluster, kubectl: Kubectl, namespace: str, version: Version
) -> None:
    if version == "old":
        pytest.skip("Unsupported: v1.20.2 applies objects without looking at the schema of their CRD")
    kubectl("create", "-f", "-", given=policy("db"))
    path = f"/apis/{API}/namespaces/{namespace}/minimalreservationpolicies/db/status"
    for writer in ("Admitted", "Effective"):
        body = policy("db") | {"status": {"conditions": [concluded(writer)]}}
        del body["spec"]
        crds.call("PATCH", f"{path}?fieldManager={writer}", body, content="application/apply-patch+yaml")
    assert [c["type"] for c in crds.call("GET", path)["status"]["conditions"]] == ["Admitted", "Effective"]


def concluded(kind: str) -> dict[str, str]:
    when = "2030-01-01T00:00:00Z"
    return {"type": kind, "status": "True", "reason": "Tested", "message": "a test", "lastTransitionTime": when}


def hold(name: str) -> dict[str, Any]:
    spec = {"target": "node", "knobs": ["cpu.max", "memory.high"], "expires": "2030-01-01T00:00:00Z", "why": "a test"}
    return {"apiVersion": API, "kind": "Hold", "metadata": {"name": name}, "spec": spec}


def report(cluster: Cluster, node: str, **fields: Any) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251
    status = {"node": {"heartbeat": now, **fields}, "conditions": [concluded("Ready")]}
    path = f"/apis/{API}/nodeqoses/{node}/status"
    cluster.call("PATCH", path, {"status": status}, content="application/merge-patch+json")
