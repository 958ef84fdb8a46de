"""Every verb over gRPC does what it does over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2 as details
from grpc_status import rpc_status

from j10ce.manager.grpc.proto import objects_pb2 as pb
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2 as send
from tests.manager.assembled import POLICIES, policy
from tests.manager.grpc.both import Both

POLICY = "MinimalReservationPolicy"
Refused = grpc.aio.AioRpcError


def reservation(name: str = "db", **more: Any) -> pb.MinimalReservationPolicy:
    meta = {"name": name, "namespace": "default"} | more.pop("metadata", {})
    spec = {"minimum": {"cpu": "500m", "memory": "1Gi"}} | more.pop("spec", {})
    return pb.MinimalReservationPolicy(metadata=pb.Meta(**meta), spec=pb.MinimalReservationPolicySpec(**spec))


def creating(name: str = "db", *, dry_run: bool = False, **more: Any) -> send.CreateMinimalReservationPolicyRequest:
    return send.CreateMinimalReservationPolicyRequest(object=reservation(name, **more), dry_run=dry_run)


def named(name: str = "db") -> ask.GetRequest:
    return ask.GetRequest(namespace="default", name=name)


def detail(error: Refused, kind: Any) -> Any:
    """The detail of a rich status that is of one kind."""
    made = kind()
    packed_details = [packed for packed in rpc_status.from_call(error).details if packed.Is(kind.DESCRIPTOR)]
    assert len(packed_details) == 1, rpc_status.from_call(error)
    assert packed_details[0].Unpack(made)
    return made


async def test_what_grpc_creates_both_show(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    assert made.metadata.uid
    assert await policies.Get(named()) == made
    async with both.rest.client() as api:
        shown = (await api.get(f"{POLICIES}/db")).json()
    assert shown["metadata"]["uid"] == made.metadata.uid
    assert shown["spec"] == {"minimum": {"cpu": "500m", "memory": "1Gi"}}


async def test_a_name_is_generated(both: Both) -> None:
    made = await both.stub(POLICY).Create(creating("", metadata={"name": "", "generate_name": "db-"}))
    assert made.metadata.name.startswith("db-")


async def test_a_dry_run_shows_and_stores_nothing(both: Both) -> None:
    policies = both.stub(POLICY)
    assert (await policies.Create(creating(dry_run=True))).metadata.name == "db"
    with pytest.raises(Refused) as refused:
        await policies.Get(named())
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_stale_update_is_aborted(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    made.spec.units = 3
    newer = await policies.Update(send.UpdateMinimalReservationPolicyRequest(object=made))
    assert (newer.spec.units, newer.metadata.generation) == (3, 2)
    with pytest.raises(Refused) as refused:
        await policies.Update(send.UpdateMinimalReservationPolicyRequest(object=made))
    assert refused.value.code() is grpc.StatusCode.ABORTED
    assert detail(refused.value, details.ErrorInfo).reason == "CONFLICT"
    about = detail(refused.value, details.ResourceInfo)
    assert (about.resource_type, about.resource_name) == ("j10ce.io/MinimalReservationPolicy", "default/db")


async def test_zero_is_a_wish_and_absence_is_none(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating(spec={"minimum": {"cpu": "0", "memory": "1Gi"}}))
    assert made.spec.minimum.HasField("cpu")
    assert not made.spec.minimum.HasField("network")


async def test_a_status_is_written_by_itself(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    made.status.phase = made.status.PHASE_ACTIVE
    made.spec.units = 7
    shown = await policies.UpdateStatus(send.UpdateMinimalReservationPolicyRequest(object=made))
    assert (shown.status.phase, shown.spec.units) == (shown.status.PHASE_ACTIVE, 0)
    patch = '{"status": {"phase": "Degraded"}}'
    shown = await policies.PatchStatus(ask.PatchRequest(namespace="default", name="db", patch=patch))
    assert shown.status.phase == shown.status.PHASE_DEGRADED


async def test_a_merge_patch_merges(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    patch = '{"spec": {"units": 2, "minimum": {"memory": null}}}'
    shown = await policies.Patch(ask.PatchRequest(namespace="default", name="db", patch=patch))
    assert shown.spec.units == 2
    assert not shown.spec.minimum.HasField("memory")


async def test_a_delete_keeps_to_its_preconditions(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    wrong = ask.DeleteRequest(namespace="default", name="db", preconditions=ask.Preconditions(uid="another"))
    with pytest.raises(Refused) as refused:
        await policies.Delete(wrong)
    assert refused.value.code() is grpc.StatusCode.ABORTED
    gone = await policies.Delete(ask.DeleteRequest(namespace="default", name="db"))
    assert gone.metadata.uid == made.metadata.uid
    with pytest.raises(Refused) as refused:
        await policies.Get(named())
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_pages_add_up(both: Both) -> None:
    policies = both.stub(POLICY)
    for n in range(5):
        await policies.Create(creating(f"p{n}", metadata={"labels": {"odd": str(n % 2)}}))
    seen, token = [], ""
    for remaining in (3, 1, 0):
        page = await policies.List(ask.ListRequest(limit=2, continue_token=token))
        seen += [policy.metadata.name for policy in page.items]
        token = page.metadata.continue_token
        assert page.metadata.remaining_item_count == remaining
    assert (seen, token) == (["p0", "p1", "p2", "p3", "p4"], "")
    odd = await policies.List(ask.ListRequest(namespace="default", label_selector="odd=1"))
    assert [policy.metadata.name for policy in odd.items] == ["p1", "p3"]
    assert not (await policies.List(ask.ListRequest(namespace="elsewhere"))).items


async def test_a_kind_without_namespaces_needs_none(both: Both) -> None:
    nodes = both.stub("NodeQoS")
    await nodes.Create(send.CreateNodeQoSRequest(object=pb.NodeQoS(metadata=pb.Meta(name="n1"))))
    assert (await nodes.Get(ask.GetRequest(name="n1"))).metadata.name == "n1"
    with pytest.raises(Refused, match="has no namespace"):
        await nodes.Get(ask.GetRequest(name="n1", namespace="default"))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        pytest.param(ask.GetRequest(name="db"), "namespace", id="no namespace"),
        pytest.param(ask.GetRequest(namespace="a/b", name="db"), "namespace", id="a path as a namespace"),
        pytest.param(ask.GetRequest(namespace="default"), "name", id="no name"),
        pytest.param(ask.GetRequest(namespace="default", name="../x"), "name", id="a path as a name"),
    ],
)
async def test_a_name_that_nothing_can_have_is_refused(both: Both, request_: ask.GetRequest, field: str) -> None:
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Get(request_)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert [v.field for v in detail(refused.value, details.BadRequest).field_violations] == [field]


async def test_wrong_input_has_the_same_findings_over_both(both: Both) -> None:
    wrong = {
        "minimum": {"cpu": "lots", "memory": "1Gi"},
        "units": -1,
        "ttl": "soon",
        "rollout": {"canary_percent": 300},
    }
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Create(creating("Db", spec=wrong))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    over_grpc = [(v.field, v.description) for v in detail(refused.value, details.BadRequest).field_violations]
    body = policy("Db", spec={**wrong, "rollout": {"canaryPercent": 300}})
    async with both.rest.client() as api:
        causes = (await api.post(POLICIES, json=body)).json()["details"]["causes"]
    assert over_grpc == [(cause["field"], cause["message"]) for cause in causes]
    assert len(over_grpc) >= 2


async def test_a_thousand_findings_still_arrive(both: Both) -> None:
    """A status travels in headers, and those have a limit: the last finding says how many are left out."""
    labels = {f"not a label {n:04}": "x" for n in range(1000)}
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Create(creating(metadata={"labels": labels}))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    violations = detail(refused.value, details.BadRequest).field_violations
    assert len(violations) > 10
    assert violations[-1].description.startswith(f"and {51 - len(violations) + 1} more"), (
        "50 are listed, and how many are not"
    )


async def test_a_field_that_the_server_does_not_know_is_refused(both: Both) -> None:
    from_the_future = b"\xfa\x3e\x01x"  # field 1007, a string
    data = send.CreateMinimalReservationPolicyRequest(object=reservation())
    spec = pb.MinimalReservationPolicySpec.FromString(data.object.spec.SerializeToString() + from_the_future)
    data.object.spec.CopyFrom(spec)
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Create(data)
    assert [v.field for v in detail(refused.value, details.BadRequest).field_violations] == ["spec.#1007"]


async def test_too_large_a_message_is_refused(both: Both) -> None:
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Create(creating(metadata={"annotations": {"a": "x" * (1 << 20)}}))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_calls_at_once_do_not_mix(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await asyncio.gather(*(policies.Create(creating(f"p{n}")) for n in range(20)))
    assert [policy.metadata.name for policy in made] == [f"p{n}" for n in range(20)]
