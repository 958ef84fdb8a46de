"""The gRPC server as a server: TLS, health, addresses, and a manager process that runs it under uvloop."""

from __future__ import annotations

import asyncio
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from j10ce.cli.fleet.authority import Authority
from j10ce.errors import Denied
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.access.signing import CertificateWish
from j10ce.manager.access.tokens import Keyring
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.grpc.actions import Actions
from j10ce.manager.grpc.certificate import Certificate
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.proto import requests_pb2 as ask
from j10ce.manager.grpc.proto import services_pb2_grpc
from j10ce.manager.grpc.server import GrpcServer
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Silent
from j10ce.policy.validation.validate import validate
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager import process
from tests.manager.assembled import TOKEN
from tests.manager.grpc.both import KNOWN

HEALTH = health_pb2.HealthCheckRequest()
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "pki", time.time())  # noqa: TID251  certificates are judged by the real clock
    made.create("test", 3600)
    made.issue("server", CertificateWish("server", 3600, ("localhost", "127.0.0.1")), renew=False)
    return made


def certificate(authority: Authority) -> Certificate:
    return Certificate(authority.folder / "server.crt", authority.folder / "server.key")


def assembled(stop: asyncio.Event) -> GrpcServer:
    store = MemoryStore(lambda: WALL)
    keyring = Keyring(store, lambda: WALL, owner=TOKEN)
    access = Access(keyring, Limits(time.monotonic), loopback=True)
    view = View(store)
    verbs = Verbs(store, validate, lambda: WALL, {})
    actions = Actions(Placements(store, view, lambda: WALL), Enrolment(keyring), view, AgentProxy(None), verbs.lines)
    door = Door(access, Audit(None, lambda: WALL), Metrics(), Silent())
    return GrpcServer(verbs, actions, door, stop)


@asynccontextmanager
async def serving(pair: Certificate | None, ready: Callable[[], Awaitable[Any]]) -> AsyncIterator[int]:
    stop = asyncio.Event()
    server = assembled(stop)
    port = server.listen("127.0.0.1:0", pair)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run(ready))
        yield port
        stop.set()


def secured(port: int, authority: Authority) -> grpc.aio.Channel:
    roots = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
    return grpc.aio.secure_channel(f"127.0.0.1:{port}", roots)


async def listed(channel: grpc.aio.Channel) -> Any:
    stub: Any = services_pb2_grpc.QoSProfileServiceStub(channel)
    return await stub.List(ask.ListRequest(), metadata=KNOWN, timeout=30)


async def at_once() -> None:
    return


async def test_calls_travel_over_tls(authority: Authority) -> None:
    async with serving(certificate(authority), at_once) as port:
        async with secured(port, authority) as channel:
            assert not (await listed(channel)).items
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await listed(channel)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_renewed_certificate_counts_without_a_restart(authority: Authority) -> None:
    pair = certificate(authority)
    async with serving(pair, at_once) as port:
        before = await shown(port)
        authority.issue("server", CertificateWish("server", 3600, ("localhost", "127.0.0.1")), renew=True)
        assert await shown(port) != before
        (authority.folder / "server.crt").write_text("half a renewal")
        renewed = await shown(port)
        assert renewed != before


async def shown(port: int) -> str:
    """The certificate that a fresh connection is given."""
    return await asyncio.to_thread(fetched, port)


def fetched(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=30)


def shows(port: int, authority: Authority, name: str) -> grpc.aio.Channel:
    """A client that shows the certificate of that name."""
    files = (authority.folder / f"{name}{end}" for end in (".key", ".crt"))
    roots = authority.certificate.read_bytes()
    return grpc.aio.secure_channel(
        f"127.0.0.1:{port}", grpc.ssl_channel_credentials(roots, *(file.read_bytes() for file in files))
    )


async def test_a_client_certificate_is_an_identity(authority: Authority) -> None:
    authority.issue("eve", CertificateWish("eve", 3600, role="viewer"), renew=False)
    authority.issue("stranger", CertificateWish("stranger", 3600, ("localhost",)), renew=False)
    pair = Certificate(authority.folder / "server.crt", authority.folder / "server.key", authority.certificate)
    async with serving(pair, at_once) as port:
        async with shows(port, authority, "eve") as channel:
            profiles: Any = services_pb2_grpc.QoSProfileServiceStub(channel)
            assert not (await profiles.List(ask.ListRequest(), timeout=30)).items
            for request, metadata, code in (
                (ask.DeleteRequest(name="x"), (), grpc.StatusCode.PERMISSION_DENIED),
                (ask.DeleteRequest(name="x"), KNOWN, grpc.StatusCode.NOT_FOUND),
                (ask.DeleteRequest(name="x"), (("authorization", "Bearer no"),), grpc.StatusCode.UNAUTHENTICATED),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await profiles.Delete(request, metadata=metadata, timeout=30)
                assert refused.value.code() is code
        async with shows(port, authority, "stranger") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await services_pb2_grpc.QoSProfileServiceStub(channel).List(ask.ListRequest(), timeout=30)
            assert refused.value.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)


async def test_who_shows_no_certificate_gets_no_connection_where_they_are_asked_for(authority: Authority) -> None:
    pair = Certificate(authority.folder / "server.crt", authority.folder / "server.key", authority.certificate)
    async with serving(pair, at_once) as port, secured(port, authority) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await listed(channel)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_an_address_that_others_reach_needs_tls() -> None:
    async def listen() -> None:
        assembled(asyncio.Event()).listen("0.0.0.0:0")

    with pytest.raises(Denied, match="not loopback"):
        asyncio.run(listen())


async def test_an_address_is_served_by_one(authority: Authority) -> None:
    async with serving(None, at_once) as port:
        with pytest.raises(Denied, match="cannot serve gRPC"):
            assembled(asyncio.Event()).listen(f"127.0.0.1:{port}")


async def test_health_waits_until_everything_is_read() -> None:
    ready = asyncio.Event()
    async with serving(None, ready.wait) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(HEALTH)
        assert (await watch.read()).status == NOT_SERVING
        assert (await health.Check(HEALTH)).status == NOT_SERVING
        ready.set()
        assert (await watch.read()).status == SERVING


def address_of(manager: process.Running) -> str:
    """Where it serves gRPC: it says so before it says that it is ready."""
    assert manager.process.stderr is not None
    line = next(line for line in manager.process.stderr if "grpc.start" in line)
    match = re.search(r"address=(\S+)", line)
    assert match is not None, line
    return match[1]


def test_a_manager_serves_both_and_stops_with_watchers(tmp_path: Path) -> None:
    manager = process.start(tmp_path, "--grpc-listen", "127.0.0.1:0")
    try:
        known = (("authorization", f"Bearer {manager.token}"),)
        with grpc.insecure_channel(address_of(manager)) as channel:
            profiles: Any = services_pb2_grpc.QoSProfileServiceStub(channel)
            names = {p.metadata.name for p in profiles.List(ask.ListRequest(), metadata=known, timeout=30).items}
            with manager.client() as api:
                listing = api.get("/apis/j10ce.io/v1alpha1/qosprofiles").json()
            assert names == {item["metadata"]["name"] for item in listing["items"]} != set()
            watch = profiles.Watch(ask.WatchRequest(), metadata=known)
            assert next(watch).object.metadata.name in names
            assert manager.stop(signal.SIGTERM) == 0
    finally:
        process.end(manager.process)


def test_a_manager_serves_clients_with_certificates(tmp_path: Path, authority: Authority) -> None:
    authority.issue("eve", CertificateWish("eve", 3600, role="viewer"), renew=False)
    pki, tls = authority.folder, authority.certificate
    manager = process.start(
        tmp_path, "--grpc-mtls-listen", "127.0.0.1:0", "--client-ca", str(tls),
        "--tls-cert", str(pki / "server.crt"), "--tls-key", str(pki / "server.key"),
    )  # fmt: skip
    try:
        shown = grpc.ssl_channel_credentials(
            tls.read_bytes(), (pki / "eve.key").read_bytes(), (pki / "eve.crt").read_bytes()
        )
        with grpc.secure_channel(address_of(manager), shown) as channel:
            profiles: Any = services_pb2_grpc.QoSProfileServiceStub(channel)
            assert profiles.List(ask.ListRequest(), timeout=30).items
    finally:
        process.end(manager.process)


WITHOUT = "import sys; sys.modules |= dict.fromkeys(('grpc', 'google'))\n"
MAIN = WITHOUT + "from j10ce.manager.main import main\nsys.exit(main(sys.argv[1:]))"


def test_a_manager_without_grpc_says_what_it_needs(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAIN, "--store", "memory:", "--listen", "127.0.0.1:0"]
    argv += ["--token-file", str(tmp_path / "token"), "--grpc-listen", "127.0.0.1:0"]
    said = subprocess.run(argv, env={"PYTHONPATH": str(process.SOURCES)}, capture_output=True, text=True, timeout=60)
    assert said.returncode == 1
    assert "it needs the packages of j10ce-qos[fleet]" in said.stderr


def test_nothing_of_grpc_is_loaded_without_the_flag() -> None:
    code = WITHOUT + "import j10ce.manager.main"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(process.SOURCES)}, check=True, timeout=60)
