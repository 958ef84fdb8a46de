"""Events of Kubernetes: what happened to an object, where `kubectl describe` shows it.

They are for people and may be lost; equal ones are counted, and no object can have many in a short time.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import structlog

from j10ce.errors import NotFound, QosError
from j10ce.kube.client import KubeClient
from j10ce.model.kinds import Policy
from j10ce.model.stored import Happening

log = structlog.get_logger()
LONGEST: Final = 1024  # characters of a message that an API server takes
LONGEST_NAME: Final = 200
MOST_WAITING: Final = 1000
MOST_KNOWN: Final = 4096  # events that are counted on rather than written anew
BURST: Final = 20  # of one object
REFILL_S: Final = 30.0  # one more after each of these
DEFAULT_NAMESPACE: Final = "default"  # where events of objects without a namespace are looked for


class Known(NamedTuple):
    path: str
    times: int


class Subject(NamedTuple):
    """What an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Recorder:
    def __init__(self, client: KubeClient, component: str, identity: str, wall: Callable[[], float]) -> None:
        self._client, self._component, self._identity, self._wall = client, component, identity, wall
        self._waiting: asyncio.Queue[tuple[Subject, Happening]] = asyncio.Queue(MOST_WAITING)
        self._known: OrderedDict[tuple[str, Happening], Known] = OrderedDict()
        self._budgets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by uid: events left, and when

    def tell(self, policy: Policy, happening: Happening) -> None:
        meta = policy.metadata
        self.tell_of(Subject(policy.api_version, policy.kind, meta.namespace, meta.name, meta.uid), happening)

    def tell_of(self, about: Subject, happening: Happening) -> None:
        """Returns at once; what there is no room for is dropped and said so."""
        if not self._afford(about.uid):
            log.debug("event.drop", object=about.name, reason=happening.reason, why="too many of it")
            return
        try:
            self._waiting.put_nowait((about, happening))
        except asyncio.QueueFull:
            log.warning("event.drop", object=about.name, reason=happening.reason, why="too many wait")

    async def run(self) -> None:
        """Write them, for ever."""
        while True:
            about, happening = await self._waiting.get()
            try:
                await self._write(about, happening)
            except QosError as e:
                log.warning("event.fail", object=about.name, reason=happening.reason, error=str(e))
            finally:
                self._waiting.task_done()

    async def written(self) -> None:
        """Returns once every event so far was written or given up."""
        await self._waiting.join()

    def _afford(self, uid: str) -> bool:
        now = self._wall()
        left, since = self._budgets.pop(uid, (float(BURST), now))
        left = min(BURST, left + (now - since) / REFILL_S)
        self._budgets[uid] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._budgets) > MOST_KNOWN:
            self._budgets.popitem(last=False)
        return left >= 1

    async def _write(self, about: Subject, happening: Happening) -> None:
        key = about.uid, happening
        if (known := self._known.pop(key, None)) is not None:
            again = {"count": known.times + 1, "lastTimestamp": self._now()}
            try:
                await self._client.patch(known.path, again, "merge")
            except NotFound:  # events end after an hour
                known = None
        if known is None:
            body = self._body(about, happening)
            meta = body["metadata"]
            collection = f"/api/v1/namespaces/{meta['namespace']}/events"
            await self._client.create(collection, body)
            known = Known(f"{collection}/{meta['name']}", 0)
        self._known[key] = known._replace(times=known.times + 1)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def _body(self, about: Subject, happening: Happening) -> dict[str, Any]:
        now, namespace = self._now(), about.namespace or DEFAULT_NAMESPACE
        involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[:LONGEST_NAME]}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": involved | ({"namespace": about.namespace} if about.namespace else {}),
            "type": happening.type,
            "reason": happening.reason,
            "message": happening.message[:LONGEST],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._identity,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _now(self) -> str:
        return datetime.fromtimestamp(int(self._wall()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
