"""The gRPC half of a manager in this process, beside its REST half."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.grpc.actions import Actions
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.proto import actions_pb2_grpc, services_pb2_grpc
from j10ce.manager.grpc.server import GrpcServer
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Silent
from j10ce.model.catalogue import KINDS
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL
from tests.manager.assembled import TOKEN, Manager, assemble

KNOWN = (("authorization", f"Bearer {TOKEN}"),)
STORED = [kind for kind in KINDS.values() if kind.stored]


class Both(NamedTuple):
    """One store, two front ends."""

    rest: Manager
    channel: grpc.aio.Channel
    audit: Path
    metrics: Metrics
    address: str

    def stub(self, kind: str) -> Any:
        """Of a kind, or of what is done beside them."""
        name = f"{kind}ServiceStub"
        made = getattr(services_pb2_grpc, name, None) or getattr(actions_pb2_grpc, name)
        return made(Tokened(self.channel))


class Tokened:
    """A channel whose calls carry the token."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def unary_unary(self, *args: Any, **more: Any) -> Any:
        call = self._channel.unary_unary(*args, **more)
        return lambda request, metadata=KNOWN, **options: call(request, metadata=metadata, **options)

    def unary_stream(self, *args: Any, **more: Any) -> Any:
        call = self._channel.unary_stream(*args, **more)
        return lambda request, metadata=KNOWN, **options: call(request, metadata=metadata, **options)


@asynccontextmanager
async def running(
    audit: Path, agent: Path | None = None, store: Store | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Both]:
    def wall() -> float:
        return WALL

    manager = assemble(store or MemoryStore(wall), agent, wall=wall, places=True)
    metrics = Metrics()
    access = Access(manager.keyring, Limits(clock), loopback=True)
    placements = Placements(manager.store, manager.view, wall)
    actions = Actions(placements, Enrolment(manager.keyring), manager.view, AgentProxy(agent), manager.verbs.lines)
    server = GrpcServer(manager.verbs, actions, Door(access, Audit(audit, wall), metrics, Silent()), manager.stop)
    port = server.listen("127.0.0.1:0")
    async with asyncio.TaskGroup() as group:
        keepers = [group.create_task(manager.view.run()), group.create_task(manager.keyring.follow())]
        group.create_task(server.run(manager.view.ready))
        await manager.keyring.synced.wait()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.channel_ready()
            yield Both(manager, channel, audit, metrics, f"127.0.0.1:{port}")
        manager.stop.set()
        for keeper in keepers:
            keeper.cancel()
    await manager.store.close()
