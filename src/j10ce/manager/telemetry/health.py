"""Whether this manager can do its work, and as what: leader or follower."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from j10ce.errors import Denied, NotFound, StoreError
from j10ce.http.status import Refusal
from j10ce.manager.asgi.requests import not_allowed
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.model.stored import Unreadable
from j10ce.store.elector import Elector

log = structlog.get_logger()
LOOK_S: Final = 2.0
PROBE: Final = ("QoSProfile", "", "system")
ASKED_AGAIN: Final = ("list ", "watch ", f"get {PROBE[0]}")  # a refusal of these ends as soon as the right is back


class Health:
    """`refused`: what the store does not let us do beside what `store` knows of."""

    def __init__(
        self,
        store: ObservedStore,
        elector: Elector,
        complete: Callable[[], bool],
        metrics: Metrics,
        refused: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._store, self._elector, self._complete, self._also_refused = store, elector, complete, refused
        metrics.leader.set_function(lambda: float(elector.leader))
        metrics.store_up.set_function(lambda: float(not store.trouble))

    @property
    def problem(self) -> str:
        """Why requests should go elsewhere; empty when they need not."""
        if not self._complete():
            return "objects are still being read"
        if self._store.trouble:
            return f"the store does not answer ({self._store.trouble}); what is known is still served"
        if blind := [f"{what}: {why}" for what, why in self._refused() if what.startswith(ASKED_AGAIN)]:
            return f"the store refuses us a right; what is known is still served. {'; '.join(blind)}"
        return ""

    def verbose(self) -> str:
        """For `/readyz?verbose`."""
        role = "leader" if self._elector.leader else f"follower of {self._elector.holder or 'nobody yet'}"
        return f"role: {role}\nobjects: {'read' if self._complete() else 'being read'}\n" + (
            f"store: {self._store.trouble or 'answers'}\n"
            + "".join(f"refused: {what}: {why}\n" for what, why in self._refused())
        )

    def _refused(self) -> list[tuple[str, str]]:
        return sorted({**self._also_refused(), **self._store.refused}.items())

    def route(self) -> Route:
        async def ready(request: Request) -> Response:
            if request.method != "GET":
                raise not_allowed(request, ("GET",))
            if problem := self.problem:
                raise Refusal(503, problem, {"retry-after": "1"})
            return PlainTextResponse("ok\n" + (self.verbose() if "verbose" in request.query_params else ""))

        return Route("/readyz", ready)

    async def run(self) -> None:
        """Ask the store for something every now and then: without traffic nobody would notice that it is away."""
        away = ""
        while True:
            try:
                await self._store.get(*PROBE)
            except (NotFound, Unreadable):
                pass  # an answer
            except Denied:
                pass  # an answer as well; the store has reported it
            except StoreError as e:
                if not away:
                    log.error("store.away", error=str(e))
            if away and not self._store.trouble:
                log.info("store.back")
            away = self._store.trouble
            await asyncio.sleep(LOOK_S)
