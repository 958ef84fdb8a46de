"""Both front ends carry the same objects and say the same of wrong ones, whatever the object."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from google.rpc import error_details_pb2 as details
from grpc_status import rpc_status
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.manager.grpc.codec import message_of, plain_of
from j10ce.manager.grpc.proto import actions_pb2 as act
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2 as send
from j10ce.manager.openapi import shape
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object, Workload
from j10ce.model.placement import Placement
from j10ce.model.schema import convert, encode, parse
from j10ce.policy.profiles import builtin
from j10ce.store.store import ABSENT
from tests.manager.assembled import BASE
from tests.manager.grpc.both import STORED, Both, running
from tests.manager.grpc.test_verbs import Refused
from tests.model.generate import of


class Loop:
    """One server for all examples of a property: starting one for each would take the time of all."""

    def __init__(self, runner: asyncio.Runner, both: Both) -> None:
        self._runner, self.both = runner, both

    def run(self, work: Any) -> Any:
        return self._runner.run(work)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with asyncio.Runner() as runner:
        made = running(tmp_path_factory.mktemp("audit") / "log")
        yield Loop(runner, runner.run(made.__aenter__()))
        runner.run(made.__aexit__(None, None, None))


def objects() -> st.SearchStrategy[Object]:
    return st.one_of([of(kind.struct) for kind in STORED])


def placed(obj: Object, name: str = "") -> Object:
    """In the namespace of the path, and without what a client cannot say."""
    namespace = "default" if KINDS[obj.kind].namespaced else ""
    meta = replace(obj.metadata, namespace=namespace, managed_fields=(), uid="", generate_name="")
    return replace(obj, metadata=replace(meta, name=name or meta.name))


def path(obj: Object) -> str:
    kind = KINDS[obj.kind]
    return f"{BASE}/namespaces/default/{kind.plural}" if kind.namespaced else f"{BASE}/{kind.plural}"


@given(objects())
def test_what_is_stored_both_show(loop: Loop, obj: Object) -> None:
    loop.run(shown_alike(loop.both, placed(obj, "x")))


async def shown_alike(both: Both, obj: Object) -> None:
    await both.rest.store.put(obj, expect=ABSENT)
    stub = both.stub(obj.kind)
    try:
        stored = await both.rest.store.put(obj, part="status") if hasattr(obj, "status") else obj
        async with both.rest.client() as api:
            over_rest = parse((await api.get(f"{path(obj)}/x")).content, type(obj))
        message = await stub.Get(ask.GetRequest(namespace=obj.metadata.namespace, name="x"))
        over_grpc = convert(plain_of(message, type(obj)), type(obj))
        assert over_rest == over_grpc
        if hasattr(obj, "status"):
            assert over_grpc == stored
    finally:
        await both.rest.store.delete(obj.kind, obj.metadata.namespace, "x")


@given(st.one_of([of(struct) for struct in shape.ANSWERS]))
def test_what_is_answered_beside_objects_survives_the_way(answer: Any) -> None:
    assert convert(plain_of(message_of(answer), type(answer)), type(answer)) == answer


@given(of(Workload))
def test_a_placement_ends_alike_over_both(loop: Loop, wanted: Workload) -> None:
    loop.run(placed_alike(loop.both, wanted))


async def placed_alike(both: Both, wanted: Workload) -> None:
    async with both.rest.client() as api:
        answer = await api.post(f"{BASE}/placements?dryRun=All", content=encode(wanted), headers=JSON)
    try:
        made = await both.stub("Placement").Place(act.PlaceRequest(workload=message_of(wanted), dry_run=True))
    except Refused as refused:
        assert_alike(answer.json(), refused)
    else:
        assert answer.status_code == 200, answer.text
        assert convert(plain_of(made, Placement), Placement) == parse(answer.content, Placement)


@given(objects(), st.sampled_from(["x", ""]))
def test_a_create_ends_alike_over_both(loop: Loop, obj: Object, name: str) -> None:
    loop.run(created_alike(loop.both, placed(obj, name)))


async def test_a_right_one_is_created_alike(both: Both) -> None:
    """Random objects are wrong more often than right."""
    for profile in builtin():
        await created_alike(both, profile)


async def created_alike(both: Both, obj: Object) -> None:
    async with both.rest.client() as api:
        answer = await api.post(f"{path(obj)}?dryRun=All", content=encode(obj), headers=JSON)
    request = getattr(send, f"Create{obj.kind}Request")(object=message_of(obj), dry_run=True)
    try:
        made = await both.stub(obj.kind).Create(request)
    except Refused as refused:
        assert_alike(answer.json(), refused)
    else:
        assert answer.status_code == 201, answer.text
        over_grpc = convert(plain_of(made, type(obj)), type(obj))
        assert known(over_grpc) == known(parse(answer.content, type(obj)))


JSON = {"content-type": "application/json"}


def known(obj: Any) -> Any:
    """Without what each create makes afresh, and who asked for it."""
    return replace(obj, metadata=replace(obj.metadata, uid="", name="", managed_fields=()))


def assert_alike(over_rest: dict[str, Any], refused: Refused) -> None:
    status = rpc_status.from_call(refused)
    assert status is not None, refused
    detail = details.BadRequest()
    for packed in status.details:
        packed.Unpack(detail)
    # A map has no order in protobuf, so findings of its entries have none either.
    causes = {(c["field"], cut(c["message"])) for c in over_rest.get("details", {}).get("causes", ())}
    violations = {(v.field, v.description) for v in detail.field_violations}
    left_out = {(field, text) for field, text in violations if text.startswith("and ")}
    assert violations - left_out <= causes
    assert left_out or violations == causes
    assert causes or over_rest["message"] == refused.details()


def cut(text: str) -> str:
    return text if len(text.encode()) <= 1024 else text.encode()[:1020].decode(errors="ignore") + " …"
