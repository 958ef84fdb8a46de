"""Who may call what over gRPC: the tokens, rights, limits and audit log of the REST half."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2 as details
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from j10ce.manager.access import gate, tokens
from j10ce.manager.fairness import rate_limits
from j10ce.manager.grpc.gate import address
from j10ce.manager.grpc.proto import objects_pb2 as pb
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2 as send
from j10ce.manager.identity import Act, Caller
from j10ce.model.kinds import Credential, CredentialSpec, Meta
from j10ce.store.memory import MemoryStore
from j10ce.store.store import ABSENT
from j10ce.testing.build import WALL
from tests.manager.grpc.both import KNOWN, STORED, Both, running
from tests.manager.grpc.test_verbs import POLICY, Refused, creating, detail, named
from tests.manager.grpc.test_watch import following

Metadata = tuple[tuple[str, str], ...]


async def enrolled(both: Both, name: str, **spec: Any) -> Metadata:
    """The metadata of a caller whose credential is stored, once the manager knows it."""
    token, digest = tokens.make(name)
    made = Credential(metadata=Meta(name=name), spec=CredentialSpec(hash=digest, **spec))
    await both.rest.store.put(made, expect=ABSENT)
    await settled(both, token, known=True)
    return (("authorization", f"Bearer {token}"),)


async def settled(both: Both, token: str, *, known: bool) -> None:
    """The manager follows the credentials at its own pace."""
    async with asyncio.timeout(30):
        while (both.rest.keyring.recognise(token.encode()) is not None) is not known:  # noqa: ASYNC110  there is nothing to wait for
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param((), id="no token"),
        pytest.param((("authorization", "Bearer wrong"),), id="a wrong token"),
        pytest.param((("authorization", "Basic c2VzYW1l"),), id="another scheme"),
        pytest.param((("x-authorization", KNOWN[0][1]),), id="under another name"),
    ],
)
async def test_a_stranger_is_turned_away(both: Both, metadata: Metadata) -> None:
    policies = both.stub(POLICY)
    for call in (policies.Get(named(), metadata=metadata), policies.Create(creating(), metadata=metadata)):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(Refused) as refused:
        await following(policies.Watch(ask.WatchRequest(), metadata=metadata))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_every_call_of_every_service_asks_for_a_right(both: Both) -> None:
    """A bootstrap token may enrol nodes, and nothing else."""
    nobody = await enrolled(both, "new-hosts", role="bootstrap", uses=1, expires=soon())
    for kind in STORED:
        service = send.DESCRIPTOR.services_by_name[f"{kind.name}Service"]
        stub = both.stub(kind.name)
        for method in service.methods:
            request = filled(method.input_type, "default" if kind.namespaced else "")
            call = getattr(stub, method.name)(request, metadata=nobody)
            with pytest.raises(Refused) as refused:
                await (following(call) if method.name == "Watch" else call)
            expected = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
            assert refused.value.code() in expected, f"{kind.name}.{method.name}"


def filled(message: Any, namespace: str) -> Any:
    made = message._concrete_class()
    names = made.object.metadata if "object" in message.fields_by_name else made
    names.namespace = namespace
    if "name" in names.DESCRIPTOR.fields_by_name:
        names.name = "x"
    return made


def soon() -> datetime:
    return datetime.fromtimestamp(WALL, UTC) + timedelta(hours=1)


async def test_a_viewer_reads_and_does_not_write(both: Both) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    policies = both.stub(POLICY)
    assert not (await policies.List(ask.ListRequest(), metadata=viewer)).items
    with pytest.raises(Refused) as refused:
        await policies.Create(creating(), metadata=viewer)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert detail(refused.value, details.ErrorInfo).reason == "FORBIDDEN"
    with pytest.raises(Refused, match="may not get Credential"):
        await both.stub("Credential").Get(ask.GetRequest(name="eve"), metadata=viewer)


async def test_a_node_writes_the_status_of_its_own_node_only(both: Both) -> None:
    node = await enrolled(both, "n1", role="node", node="n1")
    nodes = both.stub("NodeQoS")
    for name in ("n1", "n2"):
        await nodes.Create(send.CreateNodeQoSRequest(object=pb.NodeQoS(metadata=pb.Meta(name=name))))
    report = pb.NodeQoSStatus(node=pb.NodeReport(armed=True))
    for name, code in (("n1", None), ("n2", grpc.StatusCode.PERMISSION_DENIED)):
        request = send.UpdateNodeQoSRequest(object=pb.NodeQoS(metadata=pb.Meta(name=name), status=report))
        if code is None:
            assert (await nodes.UpdateStatus(request, metadata=node)).status.node.armed
        else:
            with pytest.raises(Refused) as refused:
                await nodes.UpdateStatus(request, metadata=node)
            assert refused.value.code() is code


async def test_a_watch_ends_with_its_token(both: Both) -> None:
    viewer = await enrolled(both, "eve", role="viewer")
    policies = both.stub(POLICY)
    watch = policies.Watch(ask.WatchRequest(bookmarks=True), metadata=viewer)
    await following(watch)
    await both.rest.store.delete("Credential", "", "eve")
    await settled(both, viewer[0][1].removeprefix("Bearer "), known=False)
    await policies.Create(creating())
    with pytest.raises(Refused) as refused:
        await following(watch)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_one_caller_does_not_ask_for_ever(tmp_path: Path) -> None:
    async with running(tmp_path / "audit", clock=lambda: 0.0) as both:
        viewer = await enrolled(both, "eve", role="viewer")
        policies = both.stub(POLICY)
        with pytest.raises(Refused) as refused:
            await asyncio.gather(*(policies.List(ask.ListRequest(), metadata=viewer) for _ in range(500)))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_writes_and_refusals_are_in_the_audit_log(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    with pytest.raises(Refused):
        await policies.Create(creating("other"), metadata=())
    ended = [line for line in read(both.audit) if line.get("stage") != "intent"]
    assert [(line["code"], line.get("who", ""), line["path"]) for line in ended] == [
        (200, "owner", f"{POLICY}/Create"),
        (401, "", f"{POLICY}/Create"),
    ]
    assert ended[0]["name"] == "db"
    assert ended[0]["source"] == "127.0.0.1"


async def test_calls_are_counted(both: Both) -> None:
    policies = both.stub(POLICY)
    await policies.Create(creating())
    with pytest.raises(Refused):
        await policies.Get(named("absent"))
    text = bytes(both.metrics.render().body).decode()
    assert 'j10ce_manager_requests_total{code="200",method="gRPC"} 1.0' in text
    assert 'j10ce_manager_requests_total{code="404",method="gRPC"} 1.0' in text


async def test_anyone_may_ask_for_health(both: Both) -> None:
    health = health_pb2_grpc.HealthStub(both.channel)
    await both.rest.view.ready()
    for service in ("", "j10ce.v1alpha1.QoSProfileService"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection_is_for_callers_that_are_known(both: Both) -> None:
    reflection = reflection_pb2_grpc.ServerReflectionStub(both.channel)
    listing = [reflection_pb2.ServerReflectionRequest(list_services="")]
    assert await reflection.ServerReflectionInfo().code() is grpc.StatusCode.UNAUTHENTICATED
    answer = await following(reflection.ServerReflectionInfo(iter(listing), metadata=KNOWN))
    names = {service.name for service in answer.list_services_response.service}
    assert {f"j10ce.v1alpha1.{kind.name}Service" for kind in STORED} <= names
    asked = [reflection_pb2.ServerReflectionRequest(file_containing_symbol="j10ce.v1alpha1.QoSProfileService")]
    answer = await following(reflection.ServerReflectionInfo(iter(asked), metadata=KNOWN))
    assert answer.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize(
    ("peer", "source"),
    [
        ("ipv4:10.0.0.1:5000", "10.0.0.1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[2001:db8::1]:5000", "2001:db8::1"),
        ("unix:/run/x.sock", "unix:/run/x.sock"),
    ],
)
def test_the_peer_is_an_address(peer: str, source: str) -> None:
    assert address(peer) == source


class Slow(MemoryStore):
    """A store that has taken a write, and is long in saying so."""

    def __init__(self) -> None:
        super().__init__(lambda: WALL)
        self.taken, self.never = asyncio.Event(), asyncio.Event()

    async def put(self, obj: Any, **more: Any) -> Any:
        stored = await super().put(obj, **more)
        if obj.metadata.name == "ghost":
            self.taken.set()
            await self.never.wait()
        return stored


async def test_a_write_whose_caller_gives_up_is_in_the_audit_log(tmp_path: Path) -> None:
    store = Slow()
    async with running(tmp_path / "audit", store=store) as both:
        call = both.stub(POLICY).Create(creating("ghost"))
        async with asyncio.timeout(30):
            await store.taken.wait()
            call.cancel()
            while len(lines := [x for x in read(tmp_path / "audit") if x.get("name") == "ghost"]) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
    intent, outcome = lines
    assert (intent["stage"], intent["id"]) == ("intent", outcome["id"])
    assert (outcome["stage"], outcome["code"]) == ("outcome", 499)
    assert outcome["after"]["spec"]


async def test_a_write_whose_caller_gives_up_counts_as_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be on its way to the disk: otherwise whoever hangs up in time could fill the store."""
    charged: list[tuple[str, int]] = []
    monkeypatch.setattr(rate_limits.Limits, "stored", lambda _, caller, grown: charged.append((caller.name, grown)))
    store = Slow()
    async with running(tmp_path / "audit", store=store) as both:
        editor = await enrolled(both, "ed", role="editor")
        call = both.stub(POLICY).Create(creating("ghost"), metadata=editor)
        async with asyncio.timeout(30):
            await store.taken.wait()
            call.cancel()
            while not charged:  # noqa: ASYNC110
                await asyncio.sleep(0)
    assert [who for who, _ in charged] == ["ed"]
    assert charged[0][1] > 100


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_a_strangers_message_is_not_looked_at(both: Both) -> None:
    """Garbage is garbage only to those we know."""
    call = both.channel.unary_unary(f"/j10ce.v1alpha1.{POLICY}Service/Create")
    with pytest.raises(Refused) as refused:
        await call(b"\xff" * 1000)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(Refused) as refused:
        await call(b"\xff" * 1000, metadata=KNOWN)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_strangers_are_limited_over_grpc(tmp_path: Path) -> None:
    async with running(tmp_path / "audit", clock=lambda: 0.0) as both:
        call = both.channel.unary_unary(f"/j10ce.v1alpha1.{POLICY}Service/Get")
        heard = await asyncio.gather(*(call(b"") for _ in range(200)), return_exceptions=True)
        codes = [answer.code() for answer in heard if isinstance(answer, grpc.aio.AioRpcError)]
    assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 200 - rate_limits.STRANGERS_BURST


async def test_a_stranger_that_asks_too_often_costs_next_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that are begun and given up at once are bounded by nothing else: none is looked at, traced or recorded."""
    begun = 0

    class Counted(Act):
        def __init__(self, **given: Any) -> None:
            nonlocal begun
            begun += 1
            super().__init__(**given)

    monkeypatch.setattr(gate, "Act", Counted)
    async with running(tmp_path / "audit", clock=lambda: 0.0) as both:
        call = both.channel.unary_unary(f"/j10ce.v1alpha1.{POLICY}Service/Get")
        for _ in range(3):
            calls = [call(b"", metadata=(("authorization", "Bearer wrong"),)) for _ in range(100)]
            await asyncio.gather(*calls, return_exceptions=True)
        assert begun == rate_limits.STRANGERS_BURST
        assert await both.stub("QoSProfile").List(ask.ListRequest(limit=1), metadata=KNOWN)


async def test_few_strangers_may_watch_our_health(both: Both) -> None:
    watch = health_pb2_grpc.HealthStub(both.channel).Watch
    streams = []
    for _ in range(64):  # one by one: of one address few questions may be on their way
        streams.append(watch(health_pb2.HealthCheckRequest()))
        await streams[-1].read()
    with pytest.raises(Refused) as refused:
        await watch(health_pb2.HealthCheckRequest()).read()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "64 watch the health" in refused.value.details()
    for stream in streams:
        stream.cancel()


async def test_a_long_selector_is_refused_by_its_length(both: Both) -> None:
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).List(ask.ListRequest(label_selector=" " * 70_000 + "!"))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "too long" in refused.value.details()


async def test_the_name_of_a_field_manager_is_bounded(both: Both) -> None:
    request = ask.PatchRequest(namespace="default", name="p", patch="{}", field_manager="x" * 5000)
    with pytest.raises(Refused) as refused:
        await both.stub(POLICY).Patch(request)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "fieldManager" in refused.value.details()


async def test_time_on_the_loop_is_paid_over_grpc_too(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[tuple[str, float]] = []
    paid = rate_limits.Limits.spent

    def spent(self: rate_limits.Limits, caller: Caller, seconds: float, *, writes: bool, reserved: float = 0.0) -> None:
        collected.append((caller.name, seconds))
        paid(self, caller, seconds, writes=writes, reserved=reserved)

    monkeypatch.setattr(rate_limits.Limits, "spent", spent)
    viewer = await enrolled(both, "eve", role="viewer")
    await both.stub(POLICY).List(ask.ListRequest(), metadata=viewer)
    assert {name for name, seconds in collected if seconds > 0} == {"eve"}


async def test_a_watch_pays_for_its_time_while_it_goes_on(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[str] = []
    paid = rate_limits.Limits.spent

    def spent(self: rate_limits.Limits, caller: Caller, seconds: float, *, writes: bool, reserved: float = 0.0) -> None:
        if seconds > 0:
            collected.append(caller.name)
        paid(self, caller, seconds, writes=writes, reserved=reserved)

    monkeypatch.setattr(gate, "MUCH_S", 0.0)
    monkeypatch.setattr(rate_limits.Limits, "spent", spent)
    viewer = await enrolled(both, "eve", role="viewer")
    watch = both.stub(POLICY).Watch(ask.WatchRequest(bookmarks=True), metadata=viewer)
    await watch.read()
    assert set(collected) == {"eve"}
    watch.cancel()
