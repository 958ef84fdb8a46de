"""What is no verb of a stored object ends over gRPC as it does over REST."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2 as details

from j10ce.manager.access.enrolment import NodeCredential
from j10ce.manager.grpc.codec import message_of, plain_of
from j10ce.manager.grpc.proto import actions_pb2 as act
from j10ce.manager.grpc.proto import objects_pb2 as pb
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.model.kinds import NodeQoS, Workload
from j10ce.model.placement import Placement
from j10ce.model.schema import convert, encode, parse
from j10ce.policy.document.document import NodeDocument
from j10ce.testing.build import WALL
from tests.manager.api.test_agent_proxy import fake_agent
from tests.manager.api.test_place import lead
from tests.manager.assembled import BASE
from tests.manager.grpc.both import Both, running
from tests.manager.grpc.test_access import enrolled, soon
from tests.manager.grpc.test_verbs import Refused, creating, detail
from tests.manager.grpc.test_watch import following
from tests.scheduler.place.fleet import node, workload

PLACEMENTS = f"{BASE}/placements"
JSON = {"content-type": "application/json"}


async def add(both: Both, *nodes: NodeQoS) -> None:
    for made in nodes:
        await both.rest.store.put(made)
        stored = await both.rest.store.put(made, part="status")
        while stored not in both.rest.view.all(NodeQoS):
            await both.rest.view.objects.moved(both.rest.view.objects.epoch)


def asking(wanted: Workload, **more: Any) -> act.PlaceRequest:
    return act.PlaceRequest(workload=message_of(wanted), **more)


@pytest.mark.parametrize("wanted", [
    pytest.param(workload(cpu="2"), id="one that fits"),
    pytest.param(workload(cpu="2000"), id="one that does not"),
])  # fmt: skip
async def test_what_would_be_is_the_same_over_both(both: Both, wanted: Workload) -> None:
    await add(both, node("n1"), node("n2", cordoned=True))
    async with both.rest.client() as api:
        answer = await api.post(f"{PLACEMENTS}?dryRun=All", content=encode(wanted), headers=JSON)
    made = await both.stub("Placement").Place(asking(wanted, dry_run=True))
    assert convert(plain_of(made, Placement), Placement) == parse(answer.content, Placement)
    assert not (await both.rest.store.list("MinimalReservationPolicy")).items


async def test_a_placement_holds_the_floor_and_may_be_asked_for_again(both: Both) -> None:
    await add(both, node("n1"))
    wanted = workload(cpu="2")
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(lead(both.rest.store, lambda: WALL))
        made = await both.stub("Placement").Place(asking(wanted, hold_for="1h"))
        held = await both.stub("MinimalReservationPolicy").List(ask.ListRequest())
        async with both.rest.client() as api:
            again = parse((await api.post(PLACEMENTS, content=encode(wanted), headers=JSON)).content, Placement)
        leading.cancel()
    assert made.node == "n1"
    assert [(p.spec.ttl, p.metadata.namespace) for p in held.items] == [("1h", "default")]
    assert (again.node, again.reservation) == (made.node, made.reservation)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        pytest.param(act.PlaceRequest(), "workload", id="no workload"),
        pytest.param(asking(workload(), hold_for="0s"), "for", id="no time"),
        pytest.param(act.PlaceRequest(workload=pb.Workload(metadata=pb.Meta(name="A!"))), "metadata.name", id="a name"),
    ],
)
async def test_a_wrong_wish_is_refused_at_its_place(both: Both, request_: Any, field: str) -> None:
    with pytest.raises(Refused) as refused:
        await both.stub("Placement").Place(request_)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field in {violation.field for violation in detail(refused.value, details.BadRequest).field_violations}


async def test_a_viewer_may_ask_what_would_be_and_no_more(both: Both) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    await add(both, node("n1"))
    placing = both.stub("Placement")
    assert (await placing.Place(asking(workload(), dry_run=True), metadata=viewer)).node == "n1"
    with pytest.raises(Refused) as refused:
        await placing.Place(asking(workload()), metadata=viewer)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("role", "service", "method"),
    [
        ("bootstrap", "Placement", "Place"),
        ("bootstrap", "NodeCredential", "Get"),
        ("bootstrap", "NodeDocument", "Get"),
        ("bootstrap", "Workload", "Get"),
        ("bootstrap", "Workload", "List"),
        ("editor", "NodeCredential", "Issue"),
    ],
)
async def test_every_call_asks_for_a_right(both: Both, role: str, service: str, method: str) -> None:
    more = {"uses": 1, "expires": soon()} if role == "bootstrap" else {}
    known = await enrolled(both, "someone", role=role, **more)
    request = act.DESCRIPTOR.services_by_name[f"{service}Service"].methods_by_name[method].input_type
    with pytest.raises(Refused) as refused:
        await getattr(both.stub(service), method)(request._concrete_class(), metadata=known)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_node_enrols_once_and_rotates_its_own_token(both: Both) -> None:
    rack = await enrolled(both, "rack", role="bootstrap", uses=1, expires=soon())
    credentials = both.stub("NodeCredential")
    made = await credentials.Issue(act.IssueNodeCredentialRequest(node="n1", lifetime="12h"), metadata=rack)
    assert made.expires.seconds == int(WALL) + 12 * 3600
    own = (("authorization", f"Bearer {made.token}"),)
    rotated = await credentials.Issue(act.IssueNodeCredentialRequest(node="n1"), metadata=own)
    assert rotated.token not in ("", made.token)
    shown = await credentials.Get(act.GetNodeCredentialRequest(node="n1"), metadata=own)
    async with both.rest.client(authorization=own[0][1]) as api:
        over_rest = parse((await api.get(f"{BASE}/nodecredentials/n1")).content, NodeCredential)
    assert convert(plain_of(shown, NodeCredential), NodeCredential) == over_rest
    for whom, code in ((rack, grpc.StatusCode.UNAUTHENTICATED), (own, grpc.StatusCode.PERMISSION_DENIED)):
        with pytest.raises(Refused) as refused:
            await credentials.Issue(act.IssueNodeCredentialRequest(node="n2"), metadata=whom)
        assert refused.value.code() is code


async def test_an_enrolment_is_in_the_audit_log_and_its_token_is_not(both: Both) -> None:
    made = await both.stub("NodeCredential").Issue(act.IssueNodeCredentialRequest(node="n1"))
    intent, line = [json.loads(line) for line in both.audit.read_text().splitlines()]
    assert (intent["stage"], intent["name"]) == ("intent", "n1")
    assert (line["path"], line["code"], line["name"]) == ("NodeCredential/Issue", 200, "n1")
    assert made.token.rpartition(".")[2] not in both.audit.read_text()


async def test_what_a_node_obeys_is_the_same_over_both(both: Both) -> None:
    await both.stub("MinimalReservationPolicy").Create(creating())
    async with both.rest.client() as api:
        over_rest = parse((await api.get(f"{BASE}/nodedocuments/n1")).content, NodeDocument)
    document = await both.stub("NodeDocument").Get(act.GetNodeDocumentRequest(node="n1"))
    assert convert(plain_of(document, NodeDocument), NodeDocument) == over_rest


async def test_a_node_follows_its_own_document_and_no_other(both: Both) -> None:
    own = await enrolled(both, "n1", role="node", node="n1")
    documents = both.stub("NodeDocument")
    watch = documents.Watch(act.WatchNodeDocumentRequest(node="n1"), metadata=own)
    first = await following(watch)
    assert first.hash == first.document.hash
    await both.stub("MinimalReservationPolicy").Create(creating())
    second = await following(watch)
    assert [policy.metadata.name for policy in second.document.policies] == ["db"]
    watch.cancel()
    with pytest.raises(Refused) as refused:
        await following(documents.Watch(act.WatchNodeDocumentRequest(node="n2"), metadata=own))
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    again = documents.Watch(act.WatchNodeDocumentRequest(node="n1", hash=first.hash), metadata=own)
    assert (await following(again)).hash == second.hash
    again.cancel()


async def test_workloads_are_those_of_the_agent_beside_it(tmp_path: Path) -> None:
    async with await asyncio.start_unix_server(fake_agent, tmp_path / "agent"):
        async with running(tmp_path / "audit", tmp_path / "agent") as both:
            workloads = both.stub("Workload")
            (item,) = (await workloads.List(ask.ListRequest(label_selector="app=web"))).items
            assert item.metadata.labels == {"app": "web"}
            assert not (await workloads.List(ask.ListRequest(label_selector="app=db"))).items
            for name, code in (("gone", grpc.StatusCode.NOT_FOUND), ("silent", grpc.StatusCode.UNAVAILABLE)):
                with pytest.raises(Refused) as refused:
                    await workloads.Get(ask.GetRequest(namespace="default", name=name))
                assert refused.value.code() is code


async def test_without_an_agent_there_are_no_workloads(both: Both) -> None:
    with pytest.raises(Refused, match="no agent beside it"):
        await both.stub("Workload").List(ask.ListRequest())
