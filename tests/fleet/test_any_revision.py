"""Who asks for any revision (`resourceVersion=0`) is answered from memory, also while etcd hangs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import httpx2 as httpx
import pytest

from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2_grpc as stubs
from tests.etcd.cluster import Cluster, running
from tests.fleet.managers import BASE, eventually
from tests.manager import process
from tests.manager.assembled import POLICIES, policy
from tests.manager.grpc.test_server import address_of

PROFILES, CREDENTIALS = f"{BASE}/qosprofiles", f"{BASE}/credentials"
ANY = {"resourceVersion": "0"}


class Standing(NamedTuple):
    etcd: Cluster
    api: httpx.Client
    channel: grpc.Channel
    known: tuple[tuple[str, str]]


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Standing]:
    with running(tmp_path / "etcd", 1) as etcd:
        manager = process.start(tmp_path, "--store", etcd.url, "--grpc-listen", "127.0.0.1:0")
        try:
            known = (("authorization", f"Bearer {manager.token}"),)
            with manager.client() as api, grpc.insecure_channel(address_of(manager)) as channel:
                yield Standing(etcd, api, channel, known)
        finally:
            etcd.resume(0)
            process.end(manager.process)


def specs(answer: httpx.Response) -> dict[str, Any]:
    """By name; status is the leader's, and may move at any moment."""
    return {item["metadata"]["name"]: item["spec"] for item in answer.json()["items"]}


def test_reads_of_any_revision_go_on_while_etcd_hangs(standing: Standing) -> None:
    api = standing.api
    made = api.post(POLICIES, json=policy("db")).json()["metadata"]["name"]
    assert eventually(lambda: api.get(f"{POLICIES}/{made}", params=ANY).status_code == 200)
    fresh = {path: specs(api.get(path)) for path in (PROFILES, CREDENTIALS)}
    standing.etcd.pause(0)
    with pytest.raises(httpx.ReadTimeout):  # without a revision it has to be fresh, and waits
        api.get(PROFILES, timeout=1)
    assert {path: specs(api.get(path, params=ANY)) for path in fresh} == fresh
    assert api.get(f"{PROFILES}/ls", params=ANY).json()["spec"] == fresh[PROFILES]["ls"]
    assert api.get(f"{PROFILES}/nothing", params=ANY).status_code == 404
    assert len(api.get(PROFILES, params={**ANY, "limit": 2}).json()["items"]) == 2


def test_a_watch_of_any_revision_begins_while_etcd_hangs_and_goes_on_after(standing: Standing) -> None:
    api = standing.api
    assert api.get(PROFILES, params=ANY).json()["items"]
    standing.etcd.pause(0)
    asked = {**ANY, "watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    with api.stream("GET", POLICIES, params={**asked, "allowWatchBookmarks": "true"}) as watch:
        lines = watch.iter_lines()
        assert json.loads(next(lines))["type"] == "BOOKMARK"
        standing.etcd.resume(0)
        assert eventually(lambda: api.post(POLICIES, json=policy("db")).status_code == 201)
        event = json.loads(next(lines))
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "db")


def test_grpc_reads_of_any_revision_go_on_while_etcd_hangs(standing: Standing) -> None:
    profiles, known = stubs.QoSProfileServiceStub(standing.channel), standing.known
    fresh = {item.metadata.name: item.spec for item in profiles.List(ask.ListRequest(), metadata=known).items}
    standing.etcd.pause(0)
    with pytest.raises(grpc.RpcError) as refused:
        profiles.Get(ask.GetRequest(name="ls"), metadata=known, timeout=1)
    assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED, "it has to be fresh, and waits"
    items = profiles.List(ask.ListRequest(resource_version="0"), metadata=known).items
    assert {item.metadata.name: item.spec for item in items} == fresh
    assert profiles.Get(ask.GetRequest(name="ls", resource_version="0"), metadata=known).spec == fresh["ls"]
    first = next(iter(profiles.Watch(ask.WatchRequest(resource_version="0"), metadata=known)))
    assert first.object.spec == fresh[first.object.metadata.name]
