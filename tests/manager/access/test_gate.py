"""One gate: whatever carries a request, the same case has the same outcome and the same lines in the audit log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import grpc
import httpx2 as httpx
import pytest
from starlette.types import Receive, Scope, Send

from j10ce.errors import Denied
from j10ce.http.status import CODES, CUT_OFF, Refusal
from j10ce.manager.access import tokens
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.rest import ResourceRoutes
from j10ce.manager.app import build_app
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.grpc.actions import Actions
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.proto import requests_pb2, services_pb2_grpc
from j10ce.manager.grpc.server import GrpcServer
from j10ce.manager.identity import Caller, Role
from j10ce.manager.kube.doors import Doors
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Silent
from j10ce.model.kinds import Credential, CredentialSpec, Meta, MinimalReservationPolicy
from j10ce.model.schema import convert
from j10ce.store.memory import MemoryStore
from j10ce.store.store import ABSENT
from j10ce.testing.build import WALL
from tests.manager.assembled import POLICIES, TOKEN, assemble, policy
from tests.manager.grpc.test_verbs import creating

NAMES = {"editor": "ed", "viewer": "eve"}


class Store(MemoryStore):
    """Writes of `broken` fail in a way that nobody thought of; those of `slow` are done, and never answered."""

    def __init__(self) -> None:
        super().__init__(lambda: WALL)
        self.taken = asyncio.Event()

    async def put(self, obj: Any, **more: Any) -> Any:
        if obj.metadata.name == "broken":
            raise ZeroDivisionError
        stored = await super().put(obj, **more)
        if obj.metadata.name == "slow":
            self.taken.set()
            await asyncio.Event().wait()
        return stored


class Client(Protocol):
    async def create(self, token: str, name: str) -> int:
        """The HTTP code of the answer, or of what it means in HTTP."""
        ...

    async def delete(self, token: str, name: str) -> int: ...


class Rest:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def create(self, token: str, name: str) -> int:
        return await self._code("POST", POLICIES, token, json=policy(name))

    async def delete(self, token: str, name: str) -> int:
        return await self._code("DELETE", f"{POLICIES}/{name}", token)

    async def _code(self, method: str, path: str, token: str, **more: Any) -> int:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return (await self._http.request(method, path, headers=headers, **more)).status_code


class Grpc:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._policies = services_pb2_grpc.MinimalReservationPolicyServiceStub(channel)  # type: ignore[no-untyped-call]

    async def create(self, token: str, name: str) -> int:
        code = await self._code(self._policies.Create, creating(name), token)
        return 201 if code == 200 else code  # gRPC has one code for all that went well

    async def delete(self, token: str, name: str) -> int:
        return await self._code(
            self._policies.Delete, requests_pb2.DeleteRequest(namespace="default", name=name), token
        )

    async def _code(self, method: Any, request: Any, token: str) -> int:
        try:
            await method(request, metadata=(("authorization", f"Bearer {token}"),) if token else ())
        except grpc.aio.AioRpcError as e:
            return next(code for code, row in CODES.items() if row.grpc == e.code().name and code in EXPECTED)
        return 200


EXPECTED = (401, 403, 429, 500, 503)  # of these each has a gRPC code of its own


class Front(NamedTuple):
    client: Client
    store: Store
    limits: Limits
    audit: Path
    tokens: dict[str, str]

    def lines(self) -> list[dict[str, Any]]:
        """Of the audit log, without what must differ from one request or front end to the next."""
        if not self.audit.is_file():
            return []
        left_out = ("id", "when", "method", "path")
        read = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [{name: value for name, value in line.items() if name not in left_out} for line in read]


@asynccontextmanager
async def front(door: str, audit: Path) -> AsyncIterator[Front]:
    store, limits = Store(), Limits(lambda: 0.0)
    given = {"owner": TOKEN} | {role: await enrolled(store, role) for role in NAMES}
    manager = assemble(store, wall=lambda: WALL)
    access, log = Access(manager.keyring, limits, loopback=True), Audit(audit, lambda: WALL)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(manager.view.run()), group.create_task(manager.keyring.follow())]
        await manager.view.ready()
        await manager.keyring.synced.wait()
        opening = over_rest if door == "rest" else over_grpc
        async with opening(manager, access, log) as client:
            yield Front(client, store, limits, audit, given)
        for task in running:
            task.cancel()
    await store.close()


async def enrolled(store: Store, role: str) -> str:
    token, digest = tokens.make(NAMES[role])
    spec = CredentialSpec(hash=digest, role=role)  # type: ignore[arg-type]
    await store.put(Credential(metadata=Meta(name=NAMES[role]), spec=spec), expect=ABSENT)
    return token


@asynccontextmanager
async def over_rest(manager: Any, access: Access, audit: Audit) -> AsyncIterator[Client]:
    resources = ResourceRoutes(manager.verbs, manager.view, AgentProxy(None), manager.stop)
    app = build_app(access, resources, manager.view, Metrics(), audit)
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        yield Rest(http)


@asynccontextmanager
async def over_grpc(manager: Any, access: Access, audit: Audit) -> AsyncIterator[Client]:
    placements = Placements(manager.store, manager.view, lambda: WALL)
    enrolment = Enrolment(manager.keyring)
    actions = Actions(placements, enrolment, manager.view, AgentProxy(None), manager.verbs.lines)
    server = GrpcServer(manager.verbs, actions, Door(access, audit, Metrics(), Silent()), manager.stop)
    port = server.listen("127.0.0.1:0")
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run(manager.view.ready))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.channel_ready()
            yield Grpc(channel)
        manager.stop.set()


async def no_credential(at: Front) -> int:
    return await at.client.create("", "db")


async def wrong_role(at: Front) -> int:
    return await at.client.create(at.tokens["viewer"], "db")


async def done(at: Front) -> int:
    return await at.client.create(at.tokens["editor"], "db")


async def over_budget(at: Front) -> int:
    with suppress(Refusal):
        while True:
            at.limits.request(Caller(NAMES["editor"], Role.EDITOR), writes=True)
    return await at.client.create(at.tokens["editor"], "db")


async def handler_raises(at: Front) -> int:
    return await at.client.create(at.tokens["editor"], "broken")


async def cancelled(at: Front) -> int:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        asking = group.create_task(at.client.create(at.tokens["editor"], "slow"))
        await at.store.taken.wait()
        asking.cancel()
        while not any(line.get("stage") == "outcome" for line in at.lines()):  # noqa: ASYNC110  the other end hears of it by itself
            await asyncio.sleep(0)
    return CUT_OFF


async def audit_fails(at: Front) -> int:
    return await at.client.create(at.tokens["editor"], "db")


async def audit_fails_an_administrator_who_deletes(at: Front) -> int:
    await at.store.put(stored("db"), expect=ABSENT)
    assert await at.client.create(at.tokens["owner"], "other") == 503
    return await at.client.delete(at.tokens["owner"], "db")


def stored(name: str) -> Any:
    body = policy(name)
    return convert({**body, "metadata": {**body["metadata"], "namespace": "default"}}, MinimalReservationPolicy)


CASES: list[Any] = [
    pytest.param(no_credential, 401, ["401"], id="no credential"),
    pytest.param(wrong_role, 403, ["403"], id="wrong role"),
    pytest.param(done, 201, ["intent", "outcome"], id="done"),
    pytest.param(over_budget, 429, [], id="over budget"),
    pytest.param(handler_raises, 500, ["intent", "outcome"], id="handler raises"),
    pytest.param(cancelled, CUT_OFF, ["intent", "outcome"], id="cancelled"),
    pytest.param(audit_fails, 503, [], id="audit log not writable"),
    pytest.param(audit_fails_an_administrator_who_deletes, 200, [], id="audit log not writable, and a cleaner"),
]


@pytest.mark.parametrize(("case", "code", "audited"), CASES)
async def test_rest_and_grpc_have_one_outcome_and_one_record(
    case: Callable[[Front], Awaitable[int]], code: int, audited: list[str], tmp_path: Path
) -> None:
    """What is refused for want of a right is one line; what is done, an intent and an outcome."""
    heard = []
    for door in ("rest", "grpc"):
        audit = tmp_path / door
        if case in (audit_fails, audit_fails_an_administrator_who_deletes):
            audit.mkdir()
        async with front(door, audit) as at:
            assert await case(at) == code, door
            heard.append(at.lines())
    assert [line.get("stage") or str(line["code"]) for line in heard[0]] == audited
    assert same(heard[0]) == same(heard[1])


def same(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A creation is 201 over REST alone; there its body, which holds the name, is not read of who may not create."""
    unnamed = [{name: v for name, v in x.items() if name != "name" or x.get("code") != 403} for x in lines]
    return [{**line, "code": 200} if line.get("code") == 201 else line for line in unnamed]


class Hatch:
    """A door for Kubernetes' callers that does what a test wants."""

    verbs = ("ask",)

    def __init__(self, failure: Exception | None = None, *, stranger: bool = False) -> None:
        self._failure, self._stranger = failure, stranger
        self.entered = asyncio.Event()

    def check(self, scope: Scope) -> None:
        if self._stranger:
            raise Denied("a client certificate is needed")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.set()
        if self._failure is None:
            await asyncio.Event().wait()
        else:
            raise self._failure


@pytest.mark.parametrize(
    ("hatch", "code", "reason"),
    [
        pytest.param(Hatch(stranger=True), 403, "Forbidden", id="no credential"),
        pytest.param(Hatch(Refusal(429, "too much is being sent")), 429, "TooManyRequests", id="over budget"),
        pytest.param(Hatch(ZeroDivisionError()), 500, "InternalError", id="handler raises"),
    ],
)
async def test_kubernetes_callers_are_refused_as_all_others(hatch: Hatch, code: int, reason: str) -> None:
    counted: list[tuple[str, str, int]] = []
    app = Doors(unasked, {"/hatch/": hatch}, lambda door, verb, code, _: counted.append((door, verb, code)), clock)
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.post("/hatch/ask")
        await http.post("/hatch/something-else")
    assert (answer.status_code, answer.json()["reason"]) == (code, reason)
    assert counted == [("hatch", "ask", code), ("hatch", "other", code)]
    assert hatch.entered.is_set() is not (code == 403)


async def test_a_call_of_kubernetes_that_is_given_up_is_not_counted() -> None:
    counted: list[str] = []
    hatch = Hatch()
    app = Doors(unasked, {"/hatch/": hatch}, lambda *_: counted.append("answered"), clock)
    scope = {"type": "http", "method": "POST", "path": "/hatch/ask", "headers": []}
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(app(scope, unasked, unasked))  # type: ignore[arg-type]
        await hatch.entered.wait()
        asking.cancel()
    assert asking.cancelled()
    assert counted == []


def clock() -> float:
    return 0.0


async def unasked(*_: object) -> None:
    raise AssertionError("nobody asks for that")
