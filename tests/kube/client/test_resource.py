"""Objects as an API server writes them: its additions are no obstacle, and what makes no sense is left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from j10ce.errors import Compacted
from j10ce.kube.resource import Resource, resources
from j10ce.kube.wire import WatchLine, event_of
from j10ce.model.kinds import MinimalReservationPolicy, Owner
from j10ce.model.kube.native import NativeEvent, Node
from j10ce.model.stored import Unreadable
from j10ce.testing.build import reservation
from j10ce.testing.conformance_store import KIND

META = {
    "name": "db",
    "namespace": "shop",
    "resourceVersion": "7",
    "uid": "u",
    "generation": 3,
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
EXTRA = {
    "selfLink": "/apis/…",
    "finalizers": ["x/y"],
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 0,
    "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
}
OWNER = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y", "controller": True, "blockOwnerDeletion": True}


def text(spec: Any, **meta: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps({"kind": KIND, "metadata": {**META, **meta}, "spec": spec}).encode())


GOOD, BAD = text({"minimum": {"cpu": "2"}}), text({"minimum": {"cpu": "much"}})


@pytest.fixture
def resource() -> Resource:
    return resources()[KIND]


def test_what_an_api_server_adds_is_no_obstacle(resource: Resource) -> None:
    obj = resource.read(text({"minimum": {"cpu": "2"}}, **EXTRA, ownerReferences=[OWNER]))
    assert isinstance(obj, MinimalReservationPolicy)
    assert obj.spec == reservation(cpu="2").spec
    assert (obj.metadata.generation, obj.metadata.managed_fields) == (3, ())
    owner = Owner(api_version="v1", kind="X", name="x", uid="y", controller=True, block_owner_deletion=True)
    assert obj.metadata.owner_references == (owner,)


def test_a_field_of_a_later_release_breaks_no_promise(resource: Resource, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        obj = resource.read(text({"minimum": {"cpu": "2"}, "colour": "red"}))
        assert obj.spec == reservation(cpu="2").spec
    assert capsys.readouterr().out.count("spec.colour") == 1


def test_what_makes_no_sense_is_left_out_reported_once_and_counted(
    resource: Resource, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert len(resource.readable([GOOD, BAD, text({"minimum": {}}, name="other")])) == 2
    assert [str(key) for key in resource.unread] == ["MinimalReservationPolicy shop/db"]
    assert capsys.readouterr().out.count("object.skip") == 1
    resource.readable([GOOD])
    assert not resource.unread


def test_what_is_not_even_an_object_is_left_out_too(resource: Resource) -> None:
    with pytest.raises(Unreadable, match=r"MinimalReservationPolicy \?"):
        resource.read(b"7")


def test_an_object_that_turns_unreadable_is_gone_and_may_come_back(resource: Resource) -> None:
    def kind_of_event(type_: str, raw: msgspec.Raw) -> str | None:
        event = event_of(resource, WatchLine(type_, raw), "8")  # type: ignore[arg-type]
        return event and event.type

    assert kind_of_event("MODIFIED", GOOD) == "MODIFIED"
    with pytest.raises(Compacted):  # whoever holds it has to list
        kind_of_event("MODIFIED", BAD)
    assert resource.readable([BAD]) == []
    assert kind_of_event("MODIFIED", BAD) is None
    assert kind_of_event("MODIFIED", GOOD) == "ADDED"
    assert kind_of_event("ADDED", BAD) is None
    assert kind_of_event("DELETED", BAD) is None
    assert not resource.unread


def test_paths_are_those_of_the_api() -> None:
    by_kind = resources()
    ours = "/apis/j10ce.io/v1alpha1"
    assert by_kind["Hold"].path("shop", "h") == f"{ours}/namespaces/shop/holds/h"
    assert by_kind["NodeQoS"].path("", "n/../x") == f"{ours}/nodeqoses/n%2F..%2Fx"
    assert by_kind["Pod"].collection("shop") == "/api/v1/namespaces/shop/pods"
    assert by_kind["Lease"].collection() == "/apis/coordination.k8s.io/v1/leases"
    assert {"Workload", "Credential"}.isdisjoint(by_kind)


def test_kubernetes_own_kinds_are_read() -> None:
    by_kind = resources()
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}}
    node = by_kind["Node"].read(json.dumps({"metadata": META, "status": ready}).encode())
    assert isinstance(node, Node)
    assert node.ready
    event = by_kind["Event"].read(json.dumps({"metadata": META, "reason": "Held", "count": 2}).encode())
    assert isinstance(event, NativeEvent)
    assert (event.kind, event.reason) == ("Event", "Held")
