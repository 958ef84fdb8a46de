"""Server-side apply and JSON patch over gRPC: a message says which fields are meant by having them."""

from __future__ import annotations

import json

import grpc
import pytest
from google.rpc import error_details_pb2 as details

from j10ce.manager.grpc.proto import objects_pb2 as pb
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2 as send
from tests.manager.assembled import POLICIES
from tests.manager.grpc.both import Both
from tests.manager.grpc.test_verbs import POLICY, Refused, creating, detail, named

Apply = send.ApplyMinimalReservationPolicyRequest


def wish(manager: str, *, force: bool = False, **spec: object) -> Apply:
    made = pb.MinimalReservationPolicy(
        metadata=pb.Meta(name="db", namespace="default"), spec=pb.MinimalReservationPolicySpec(**spec)
    )
    return Apply(object=made, field_manager=manager, force=force)


async def test_an_apply_creates_and_then_changes_what_it_owns(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Apply(wish("alice", minimum={"cpu": "1"}, units=2))
    assert (made.spec.units, made.spec.minimum.cpu) == (2, "1")
    both_own = await policies.Apply(wish("bob", ttl="1h"))
    assert (both_own.spec.units, both_own.spec.ttl) == (2, "1h")
    less = await policies.Apply(wish("alice", minimum={"cpu": "1"}))
    assert (less.spec.units, less.spec.ttl) == (0, "1h"), "what its owner no longer mentions goes"


async def test_a_conflict_names_the_owner(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Apply(wish("alice", minimum={"cpu": "1"}, units=2))
    with pytest.raises(Refused) as refused:
        await policies.Apply(wish("bob", units=3))
    assert refused.value.code() is grpc.StatusCode.ABORTED
    (violation,) = detail(refused.value, details.PreconditionFailure).violations
    assert (violation.type, violation.subject) == ("FIELD_MANAGER_CONFLICT", ".spec.units")
    assert "alice" in violation.description
    taken = await policies.Apply(wish("bob", force=True, units=3))
    assert taken.spec.units == 3


async def test_an_apply_needs_a_manager(both: Both) -> None:
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Apply(wish("", units=3))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert [v.field for v in detail(refused.value, details.BadRequest).field_violations] == ["fieldManager"]


async def test_a_status_is_applied_by_itself(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    request = wish("judge")
    request.object.status.phase = pb.MinimalReservationPolicyStatus.PHASE_ACTIVE
    assert (await policies.ApplyStatus(request)).status.phase == pb.MinimalReservationPolicyStatus.PHASE_ACTIVE
    assert (await policies.Get(named())).spec.minimum.cpu == "500m"


async def test_owners_are_the_same_over_both(both: Both) -> None:
    await both.stub(POLICY).Apply(wish("alice", minimum={"cpu": "1"}))
    await both.stub(POLICY).Create(creating("plain"))
    async with both.rest.client() as api:
        owners = [(await api.get(f"{POLICIES}/{name}")).json()["metadata"]["managedFields"] for name in ("db", "plain")]
    assert [(o["manager"], o["operation"]) for entries in owners for o in entries] == [
        ("alice", "Apply"),
        ("owner", "Update"),  # a caller that names no manager is one itself
    ]
    shown = (await both.stub(POLICY).Get(named())).metadata.managed_fields[0]
    assert json.loads(shown.fields_v1) == owners[0][0]["fieldsV1"]


async def test_a_json_patch_is_applied_in_order(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    steps = [
        {"op": "test", "path": "/spec/minimum/cpu", "value": "500m"},
        {"op": "replace", "path": "/spec/minimum/cpu", "value": "2"},
        {"op": "add", "path": "/spec/units", "value": 4},
    ]
    patch = ask.PatchRequest(namespace="default", name="db", type=ask.PATCH_TYPE_JSON, patch=json.dumps(steps))
    assert (await policies.Patch(patch)).spec.units == 4
    with pytest.raises(Refused) as refused:
        await policies.Patch(patch)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (await policies.Get(named())).spec.minimum.cpu == "2"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"spec": 3}'])
async def test_a_patch_that_is_none_is_refused(both: Both, text: str) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    with pytest.raises(Refused) as refused:
        await policies.Patch(ask.PatchRequest(namespace="default", name="db", patch=text))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
