"""A manager in this process, without a network, and what is asked of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx
from starlette.types import ASGIApp

from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.tokens import Keyring
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.rest import ResourceRoutes
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.app import build_app
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.policy.validation.validate import validate
from j10ce.store.store import Store
from j10ce.testing.build import WALL

TOKEN = "sesame"
BASE = "/apis/j10ce.io/v1alpha1"
POLICIES = f"{BASE}/namespaces/default/minimalreservationpolicies"


class Manager(NamedTuple):
    app: ASGIApp
    store: Store
    view: View
    stop: asyncio.Event
    keyring: Keyring
    verbs: Verbs

    def client(self, **headers: str) -> httpx.AsyncClient:
        sent = {"authorization": f"Bearer {TOKEN}", "host": "127.0.0.1:7443"} | headers
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1", headers=sent)


def assemble(
    store: Store,
    agent: Path | None = None,
    wall: Callable[[], float] = lambda: WALL,
    *,
    places: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Manager:
    view, stop = View(store), asyncio.Event()
    keyring = Keyring(store, wall, owner=TOKEN)
    mirrors = {**view.mirrors, "Credential": keyring.objects}
    verbs = Verbs(store, validate, wall, mirrors, room=view.documents.weights.check)
    resources = ResourceRoutes(verbs, view, AgentProxy(agent), stop)
    access = Access(keyring, Limits(clock), loopback=True)
    beside = Placements(store, view, wall).routes() if places else []
    app = build_app(access, resources, view, Metrics(), Audit(None, wall), beside)
    return Manager(app, store, view, stop, keyring, verbs)


class Lines:
    """A watch, straight from the application: what it sent so far, line by line."""

    def __init__(self, manager: Manager, path: str, query: str = "") -> None:
        self._app = manager.app
        self.scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost:1"), (b"authorization", f"Bearer {TOKEN}".encode())],
        }
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._left = asyncio.Event()
        self.status = 0

    async def __aenter__(self) -> Lines:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._group.create_task(self._app(self.scope, self._receive, self._send))
        self.status = (await self._sent.get())["status"]
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._left.set()
        await self._group.__aexit__(*error)

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self._sent.put(message)

    async def next(self) -> dict[str, Any]:
        message = await asyncio.wait_for(self._sent.get(), 30)
        assert message.get("more_body"), "the stream ended"
        return json.loads(message["body"])  # type: ignore[no-any-return]

    async def ended(self) -> bool:
        message = await asyncio.wait_for(self._sent.get(), 30)
        return not message.get("more_body")


def policy(name: str = "db", **more: Any) -> dict[str, Any]:
    metadata = {"name": name} | more.pop("metadata", {})
    spec = {"minimum": {"cpu": "500m", "memory": "1Gi"}} | more.pop("spec", {})
    return {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "MinimalReservationPolicy",
        "metadata": metadata,
        "spec": spec,
    } | more
