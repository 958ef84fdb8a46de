"""What there is to call, for callers that we know, as the OpenAPI document is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from j10ce.manager.access.roles import DISCOVERY, enter
from j10ce.manager.grpc.gate import Door
from j10ce.manager.grpc.visit import Visit
from j10ce.manager.grpc.watch import send_all


class Reflection:
    """The service grpc.reflection.v1alpha.ServerReflection. Who keeps asking has a watch, and every question is a
    request."""

    def __init__(self, services: tuple[str, ...], stop: asyncio.Event) -> None:
        self._servicer, self._stop = reflection.aio.ReflectionServicer(services), stop

    def handlers(self, door: Door) -> dict[str, Any]:
        return {"ServerReflectionInfo": door.watch("reflection", self._answer)}

    async def _answer(self, visit: Visit) -> None:
        enter("get", DISCOVERY)
        answers = self._servicer.ServerReflectionInfo(self._questions(visit), visit.context)
        await send_all(answers, visit, self._stop)

    async def _questions(self, visit: Visit) -> AsyncGenerator[ServerReflectionRequest]:
        """Until the caller has no more, or says nothing for ARRIVAL_S."""
        async with aclosing(visit.follow(ServerReflectionRequest)) as questions:
            async for question in questions:
                visit.limits.request(visit.passage.act.caller)
                yield question
