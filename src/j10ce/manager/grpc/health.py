"""Whether we are well, for anyone who asks over gRPC: strangers too, so what they ask and how they read is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from grpc import StatusCode
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from j10ce.errors import QosError
from j10ce.http.status import Refusal
from j10ce.manager.fairness.rate_limits import Counts, Limits, network
from j10ce.manager.grpc.status import refuse
from j10ce.manager.grpc.visit import Context, arrived, handler, parsed, send

MOST_WATCHES: Final = 64  # in all
MOST_ARRIVING: Final = 128  # questions that are not here yet: each may be as long as any message
MOST_ARRIVING_OF_ONE: Final = 8  # of them, from one address
QUESTION_S: Final = 5.0


class Health:
    """The service grpc.health.v1.Health."""

    def __init__(self, services: tuple[str, ...], limits: Limits, source: Callable[[Context], str]) -> None:
        self._services, self._limits, self._source = frozenset(("", *services)), limits, source
        self._status: HealthCheckResponse.ServingStatus = HealthCheckResponse.NOT_SERVING
        self._changed = asyncio.Event()
        self._arriving = Counts()
        self._watching = 0

    def say(self, status: HealthCheckResponse.ServingStatus) -> None:
        self._status = status
        self._changed.set()
        self._changed = asyncio.Event()

    def handlers(self) -> dict[str, Any]:
        return {
            "Check": handler(partial(self._asked, self._check)),
            "Watch": handler(partial(self._asked, self._watch)),
        }

    async def _asked(self, answer: Callable[[str, Context], Awaitable[None]], context: Context) -> None:
        source = self._source(context)
        await self._limits.passer_by(source)
        try:
            await answer(await self._service(network(source), context), context)
        except QosError as e:
            await refuse(context, e)

    async def _service(self, source: str, context: Context) -> str:
        """Whose health is asked for."""
        if self._arriving.total >= MOST_ARRIVING or self._arriving[source] >= MOST_ARRIVING_OF_ONE:
            raise Refusal(429, "too many ask for our health without saying whose")
        self._arriving.add(source, 1)
        try:
            asked = parsed(HealthCheckRequest, await arrived(context, QUESTION_S) or b"")
            return str(asked.service)
        finally:
            self._arriving.add(source, -1)

    async def _check(self, service: str, context: Context) -> None:
        if service not in self._services:
            await context.abort(StatusCode.NOT_FOUND)
        await send(context, HealthCheckResponse(status=self._status))

    async def _watch(self, service: str, context: Context) -> None:
        if self._watching >= MOST_WATCHES:
            message = f"{MOST_WATCHES} watch the health of this server already; ask with Check"
            raise Refusal(429, message)
        self._watching += 1
        try:
            last = None
            while True:
                now, changed = self._status, self._changed
                shown = now if service in self._services else HealthCheckResponse.SERVICE_UNKNOWN
                if shown != last:
                    await send(context, HealthCheckResponse(status=shown))
                    last = shown
                await changed.wait()
        finally:
            self._watching -= 1
