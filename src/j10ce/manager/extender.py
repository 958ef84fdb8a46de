"""The door that kube-scheduler knocks at: POST /extender/{filter,filter-v1beta1,prioritize,preempt,bind}.

Every pod that is scheduled waits for it. Only the leader answers: a second one would not know what the first has
offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from itertools import starmap
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

import msgspec
import structlog
from msgspec import Raw
from starlette.types import Receive, Scope, Send

from j10ce.errors import Denied, Invalid, NotFound, QosError
from j10ce.manager.auth import is_loopback, source
from j10ce.manager.door_metrics import DoorMetrics
from j10ce.manager.doors import posted, reply
from j10ce.manager.failure import Refusal
from j10ce.manager.occupants import Occupants
from j10ce.scheduler import extender_wire as wire
from j10ce.scheduler.extender import Filtered
from j10ce.scheduler.occupancy import Guest

log = structlog.get_logger()
PREFIX: Final = "/extender/"
FILTERS: Final = ("filter", "filter-v1beta1")
PATIENCE_S: Final = 0.5  # of the second that kube-scheduler has
MOST_BYTES: Final = 8 << 20  # the names of 50,000 nodes, and any pod


class Binder(Protocol):
    """As much of an API server's client as a binding needs."""

    async def create(self, path: str, body: object) -> bytes: ...


class Left(NamedTuple):
    """By a filter: kube-scheduler goes on to ask about these nodes, in the words that it was answered with."""

    question: wire.Question
    guest: Guest
    found: Filtered


class ExtenderDoor:
    """`leads`: whether this manager does. `binder` None: no bindings are made here.

    `certified`: whoever is not on this machine needs a client certificate; kube-scheduler can send nothing else. For
    bindings it is always needed.
    """

    def __init__(
        self,
        occupants: Occupants,
        leads: Callable[[], bool],
        clock: Callable[[], float],
        metrics: DoorMetrics,
        *,
        binder: Binder | None = None,
        certified: bool = False,
    ) -> None:
        self._occupants, self._leads, self._clock = occupants, leads, clock
        self._binder, self._certified, self._metrics = binder, certified, metrics
        self._left: Left | None = None  # the last
        metrics.offers(lambda: len(occupants.extender.offers))
        self._verbs: dict[str, Callable[[bytes], Any]] = {
            "prioritize": self._prioritize,
            "preempt": self._preempt,
        }

    @property
    def verbs(self) -> Collection[str]:
        return (*FILTERS, "bind", *self._verbs) if self._binder else (*FILTERS, *self._verbs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises Refusal 503 where another manager has to be asked; an ignorable extender is then ignored."""
        verb = scope["path"].removeprefix(PREFIX)
        self._check(scope, strictly=self._certified or verb == "bind")
        text = await posted(scope, receive, most=MOST_BYTES)
        answer: Any
        if verb in FILTERS:
            answer = await self._filter(text, old=verb != FILTERS[0])
        elif verb == "bind" and self._binder is not None:
            answer = await self._bind(self._binder, text)
        elif verb in self._verbs:
            answer = self._verbs[verb](text)
        else:
            raise NotFound(f"there is no {scope['path']}; the verbs are {', '.join(self.verbs)}")
        await reply(send, msgspec.json.encode(answer))

    def _check(self, scope: Scope, *, strictly: bool) -> None:
        known = is_loopback(source(scope)) or scope.get("state", {}).get("certified") is not None
        if strictly and not known:
            raise Denied("a client certificate of the client CA is needed: set certFile and keyFile in tlsConfig")
        if not self._leads():
            raise Refusal(503, "ServiceUnavailable", "another manager leads")
        if not self._occupants.complete:
            raise Refusal(503, "ServiceUnavailable", "pods and nodes are still being read")

    async def _filter(self, text: bytes, *, old: bool) -> wire.FilterAnswer:
        """`old`: for schedulers that know nothing of unresolvable nodes, such as 1.20.2, and would not tell why."""
        try:
            question = wire.question(text)
            call = wire.read_filter(question)
        except Invalid as e:
            log.warning("extender.refuse", error=str(e))
            self._metrics.malformed()
            return wire.FilterAnswer(error=str(e))
        guest = self._occupants.guest(call.pod)
        found = await self._offer(guest, call.nodes)
        self._metrics.filtered(found)
        log.debug("extender.filter", pod=f"{guest.namespace}/{guest.name}", offered=len(call.nodes), fit=len(found.fit))
        failed = {**found.failed, **found.hopeless} if old else found.failed
        fit = msgspec.json.encode(found.fit)
        self._left = Left(question._replace(names=fit), guest, found)
        return wire.FilterAnswer(node_names=Raw(fit), failed_nodes=failed, failed_and_unresolvable_nodes=found.hopeless)

    async def _offer(self, guest: Guest, nodes: Sequence[str]) -> Filtered:
        """Pods that came a moment ago may be about to be bound elsewhere: it waits a little for that to be seen, as a
        pod that is refused waits for seconds."""
        bound, until = self._occupants.bound, self._clock() + PATIENCE_S
        while True:
            epoch, found = bound.epoch, self._occupants.offer(guest, nodes, self._clock())
            if not found.soon or self._clock() >= until:
                return found
            try:
                async with asyncio.timeout(until - self._clock()):
                    await bound.moved(epoch)
            except TimeoutError:
                return found

    def _prioritize(self, text: bytes) -> list[wire.HostPriority]:
        question, left, extender = wire.question(text), self._left, self._occupants.extender
        if left is not None and left.question == question:
            scores = extender.prioritize(left.guest, left.found.fit, left.found.rows)
        else:
            call = wire.read_filter(question)
            scores = extender.prioritize(self._occupants.guest(call.pod), call.nodes)
        return list(starmap(wire.HostPriority, scores))

    def _preempt(self, text: bytes) -> wire.PreemptAnswer:
        call = wire.read_preempt(text)
        victims = {node: uids for node, (uids, _) in call.victims.items() if uids}
        guest = self._occupants.guest(call.pod)
        kept = self._occupants.extender.preempt(guest, victims)
        log.debug("extender.preempt", pod=f"{guest.namespace}/{guest.name}", offered=len(victims), kept=len(kept))
        return wire.PreemptAnswer(
            {
                node: wire.MetaVictims([wire.MetaPod(uid) for uid in uids], violations)
                for node, (uids, violations) in call.victims.items()
                if node in kept
            }
        )

    async def _bind(self, binder: Binder, text: bytes) -> wire.BindAnswer:
        """The binding is made by the API server; a uid that does not fit is its refusal."""
        try:
            call = wire.read_bind(text)
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": call.name, "namespace": call.namespace, "uid": call.uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": call.node},
            }
            namespace, name = quote(call.namespace, safe=""), quote(call.name, safe="")
            await binder.create(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)
        except QosError as e:
            log.warning("extender.refuse", error=str(e))
            return wire.BindAnswer(str(e))
        return wire.BindAnswer()
