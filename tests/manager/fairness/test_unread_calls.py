"""What one caller leaves unread over gRPC is its own share, and comes back when the call is over."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from j10ce.manager.grpc import gate, visit
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.model.kinds import Meta, QoSProfile, QoSProfileSpec
from j10ce.store.store import ABSENT
from tests.manager.grpc.both import KNOWN, Both
from tests.manager.grpc.test_access import Metadata, enrolled
from tests.manager.grpc.test_verbs import Refused

LIST = "/j10ce.v1alpha1.QoSProfileService/List"
LARGE = 200_000
DEAF = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65_536),
)


async def stored(both: Both, count: int) -> None:
    """A list of which so many parts of LARGE bytes are in every answer."""
    for n in range(count):
        meta = Meta(name=f"p{n}", annotations={"note": "x" * LARGE})
        await both.rest.store.put(QoSProfile(metadata=meta, spec=QoSProfileSpec(tier="standard")), expect=ABSENT)


async def read_again(both: Both, viewer: Metadata) -> None:
    """The manager hears of the end of a call at its own pace."""
    asked = ask.ListRequest(limit=25)
    async with asyncio.timeout(30):
        while "to read first" in str(await tried(both.stub("QoSProfile").List(asked, metadata=viewer))):
            pass


async def tried(call: Any) -> Any:
    return (await asyncio.gather(call, return_exceptions=True))[0]


async def test_answers_that_nobody_reads_are_their_callers(both: Both) -> None:
    await stored(both, 30)
    viewer = await enrolled(both, "eve", role="viewer")
    other = await enrolled(both, "joe", role="viewer")
    profiles = both.stub("QoSProfile")
    async with grpc.aio.insecure_channel(both.address, options=DEAF) as deaf:
        call = deaf.unary_stream(LIST)
        unread = [call(b"", metadata=viewer) for _ in range(2)]
        for one in unread:
            await one.initial_metadata()
        with pytest.raises(Refused) as refused:
            await profiles.List(ask.ListRequest(limit=25), metadata=viewer)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "bytes of answers to read first" in refused.value.details()
        for known in (KNOWN, other):
            assert (await profiles.List(ask.ListRequest(limit=1), metadata=known)).items
    await read_again(both, viewer)


async def test_an_unread_answer_counts_with_the_copy_that_grpc_has_of_it(both: Both) -> None:
    await stored(both, 22)  # 4.4 MB in every list, twice; a caller has 16 MiB
    viewer = await enrolled(both, "eve", role="viewer")
    async with grpc.aio.insecure_channel(both.address, options=DEAF) as deaf:
        unread = deaf.unary_stream(LIST)(b"", metadata=viewer)
        await unread.initial_metadata()
        with pytest.raises(Refused, match="bytes of answers to read first"):
            await both.stub("QoSProfile").List(ask.ListRequest(limit=25), metadata=viewer)
    await read_again(both, viewer)


async def test_an_answer_waits_as_bytes_and_not_as_what_they_were_made_of(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty lists of a thousand policies that nobody read took 82 MiB."""
    waits: list[type] = []

    async def noted(context: visit.Context, message: Any) -> None:
        waits.append(type(message))
        await visit.send(context, message)

    monkeypatch.setattr(gate, "send", noted)
    await stored(both, 3)
    asked = ask.ListRequest(limit=2)
    listed = await both.stub("QoSProfile").List(asked)
    assert [item.metadata.name for item in listed.items] == ["p0", "p1"]
    assert (await both.stub("QoSProfile").Get(ask.GetRequest(name="p2"))).metadata.name == "p2"
    assert waits == [bytes, bytes]


async def test_an_answer_that_is_too_large_is_asked_for_in_pages(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "MOST_ANSWER", 3 * LARGE)
    await stored(both, 4)
    profiles = both.stub("QoSProfile")
    with pytest.raises(Refused) as refused:
        await profiles.List(ask.ListRequest())
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "ask for pages with limit" in refused.value.details()
    assert len((await profiles.List(ask.ListRequest(limit=2))).items) == 2
