"""The API Server's gRPC half: a service per kind, placement, enrolment, health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import grpc
from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection

from j10ce.errors import Denied
from j10ce.manager.access.auth import is_loopback
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.asgi.requests import LARGE, MOST_BYTES
from j10ce.manager.grpc.actions import PACKAGE, Actions
from j10ce.manager.grpc.calls import Calls
from j10ce.manager.grpc.certificate import Certificate
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.health import Health
from j10ce.manager.grpc.reflection import Reflection
from j10ce.model.catalogue import KINDS, Kind

GRACE_S: Final = 5.0
OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", -1),  # the door weighs answers
    ("grpc.max_concurrent_streams", 1000),
    ("grpc.server.max_pending_requests", 512),  # calls are begun, and given up, faster than we can look at them
    ("grpc.server.max_pending_requests_hard_limit", 512),
    ("grpc.http2.lookahead_bytes", LARGE),  # of a message that nobody reads yet
    ("grpc.http2.bdp_probe", 0),  # or it would become more
    ("grpc.http2.ping_on_rst_stream_percent", 100),  # whoever gives up a call has to read what we say to it
    ("grpc.max_connection_idle_ms", 300_000),  # one that asks nothing
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.so_reuseport", 0),  # two managers on one address are a mistake
    ("grpc.keepalive_time_ms", 60_000),  # a watcher whose host is gone is noticed
    ("grpc.keepalive_timeout_ms", 20_000),
)


class GrpcServer:
    """`stop` ends watches and then the server; what is under way has GRACE_S to finish."""

    def __init__(self, verbs: Verbs, actions: Actions, door: Door, stop: asyncio.Event) -> None:
        self._stop = stop
        self._server = grpc.aio.server(options=OPTIONS)
        stored = [kind for kind in KINDS.values() if kind.stored]
        calls = {service_name(kind): Calls(kind, verbs, door, stop).handlers() for kind in stored}
        calls |= actions.handlers(door, stop)
        services = (*calls, health.SERVICE_NAME, reflection.SERVICE_NAME)
        self._health = Health(services, door.access.limits, door.source)
        calls[health.SERVICE_NAME] = self._health.handlers()
        calls[reflection.SERVICE_NAME] = Reflection(services, stop).handlers(door)
        handlers = [grpc.method_handlers_generic_handler(service, methods) for service, methods in calls.items()]
        self._server.add_generic_rpc_handlers(handlers)

    def listen(self, address: str, certificate: Certificate | None = None) -> int:
        """The port that is listened on; raises Denied, also for an address that would carry tokens in the clear."""
        if certificate is None and not is_loopback(address):
            raise Denied(f"{address} is not loopback: give --tls-cert and --tls-key, or serve gRPC on 127.0.0.1")
        try:
            if certificate is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, certificate.credentials())
        except RuntimeError as e:
            raise Denied(f"cannot serve gRPC on {address}: {e}") from None

    async def run(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Until `stop`; SERVING once `ready` returns."""
        await self._server.start()
        try:
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(self._serving(ready)), group.create_task(self._stop.wait())]
                await waiting[1]
                waiting[0].cancel()
        finally:
            self._health.say(HealthCheckResponse.NOT_SERVING)
            await self._server.stop(GRACE_S)

    async def _serving(self, ready: Callable[[], Awaitable[None]]) -> None:
        await ready()
        self._health.say(HealthCheckResponse.SERVING)


def service_name(kind: Kind) -> str:
    return f"{PACKAGE}.{kind.name}Service"
