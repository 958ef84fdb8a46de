"""A watch over gRPC: in order, nothing lost, and an end that says why."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2 as details

from j10ce.manager.api import watch as watching
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2 as send
from tests.manager.assembled import POLICIES
from tests.manager.grpc.both import Both
from tests.manager.grpc.test_verbs import POLICY, Refused, creating, detail


async def following(call: Any) -> Any:
    return await asyncio.wait_for(call.read(), 30)


async def test_a_watch_begins_with_what_is_there(both: Both) -> None:
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    watch = policies.Watch(ask.WatchRequest(bookmarks=True))
    event = await following(watch)
    assert (event.type, event.object) == (ask.EVENT_TYPE_ADDED, made)
    mark = await following(watch)
    assert (mark.type, mark.HasField("object")) == (ask.EVENT_TYPE_BOOKMARK, False)
    assert mark.resource_version == (await policies.List(ask.ListRequest())).metadata.resource_version


async def test_a_watch_tells_every_change_in_order(both: Both) -> None:
    policies = both.stub(POLICY)
    since = (await policies.List(ask.ListRequest())).metadata.resource_version
    watch = policies.Watch(ask.WatchRequest(namespace="default", resource_version=since))
    made = await policies.Create(creating())
    made.spec.units = 1
    await policies.Update(send.UpdateMinimalReservationPolicyRequest(object=made))
    await policies.Create(creating("other", metadata={"namespace": "elsewhere"}))
    async with both.rest.client() as api:
        await api.delete(f"{POLICIES}/db")
    events = [await following(watch) for _ in range(3)]
    kinds = [ask.EVENT_TYPE_ADDED, ask.EVENT_TYPE_MODIFIED, ask.EVENT_TYPE_DELETED]
    assert [event.type for event in events] == kinds
    assert [event.object.spec.units for event in events] == [0, 1, 1]
    again = policies.Watch(ask.WatchRequest(namespace="default", resource_version=events[0].resource_version))
    assert [await following(again) for _ in range(2)] == events[1:]


async def test_an_object_leaves_a_selection_by_an_edit(both: Both) -> None:
    policies = both.stub(POLICY)
    watch = policies.Watch(ask.WatchRequest(label_selector="team=a"))
    made = await policies.Create(creating(metadata={"labels": {"team": "a"}}))
    assert (await following(watch)).type == ask.EVENT_TYPE_ADDED
    made.metadata.labels["team"] = "b"
    await policies.Update(send.UpdateMinimalReservationPolicyRequest(object=made))
    assert (await following(watch)).type == ask.EVENT_TYPE_DELETED


async def test_a_quiet_watch_says_where_it_stands(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_S", 0.01)
    policies = both.stub(POLICY)
    made = await policies.Create(creating())
    watch = policies.Watch(ask.WatchRequest(bookmarks=True, resource_version=made.metadata.resource_version))
    mark = await following(watch)
    assert (mark.type, mark.resource_version) == (ask.EVENT_TYPE_BOOKMARK, made.metadata.resource_version)


async def test_a_lost_revision_is_out_of_range(both: Both) -> None:
    policies = both.stub(POLICY)
    with pytest.raises(Refused) as refused:
        await following(policies.Watch(ask.WatchRequest(resource_version="1")))
    assert refused.value.code() is grpc.StatusCode.OUT_OF_RANGE
    assert detail(refused.value, details.ErrorInfo).reason == "EXPIRED"


async def test_a_wrong_selector_is_refused(both: Both) -> None:
    with pytest.raises(Refused) as refused:
        await following(both.stub(POLICY).Watch(ask.WatchRequest(label_selector="a==b==c")))
    assert [v.field for v in detail(refused.value, details.BadRequest).field_violations] == ["labelSelector"]


async def test_a_server_that_stops_ends_its_watches(both: Both) -> None:
    watch = both.stub(POLICY).Watch(ask.WatchRequest(bookmarks=True))
    await following(watch)
    both.rest.stop.set()
    with pytest.raises(Refused) as refused:
        await following(watch)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_that_leaves_frees_its_watch(both: Both) -> None:
    """More watches than one caller may have at once, one after the other."""
    policies = both.stub(POLICY)
    for _ in range(3):
        watch = policies.Watch(ask.WatchRequest(bookmarks=True))
        await following(watch)
        watch.cancel()
    assert await policies.List(ask.ListRequest())
