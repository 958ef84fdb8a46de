"""The door that kube-scheduler knocks at: POST /extender/{filter,filter-v1beta1,prioritize,preempt}.

Every pod that is scheduled waits for it. Only the leader answers: a second one would not know what the first has
offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import starmap
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from msgspec import Raw
from starlette.types import Receive, Scope, Send

from j10ce.errors import Denied, Invalid, NotFound
from j10ce.http.status import Refusal
from j10ce.manager.access.auth import from_here
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.doors import Bodies, reply
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.scheduler.book.units import Guest
from j10ce.scheduler.extender import wire
from j10ce.scheduler.extender.extender import Extender, Filtered

log = structlog.get_logger()
PREFIX: Final = "/extender/"
FILTERS: Final = ("filter", "filter-v1beta1")
PATIENCE_S: Final = 0.5  # of the second that kube-scheduler has
MOST_BYTES: Final = 8 << 20  # the names of 50,000 nodes, and any pod


class Left(NamedTuple):
    """By a filter: kube-scheduler goes on to ask about these nodes, in the words that it was answered with."""

    question: wire.Question
    guest: Guest
    answer: Filtered


class ExtenderDoor:
    """`leads`: whether this manager does. Whoever is not on this machine needs a client certificate: kube-scheduler can
    send nothing else."""

    def __init__(
        self,
        occupants: Occupants,
        extender: Extender,
        leads: Callable[[], bool],
        clock: Callable[[], float],
        metrics: DoorMetrics,
    ) -> None:
        self._occupants, self._extender = occupants, extender
        self._leads, self._clock, self._metrics = leads, clock, metrics
        self._left: Left | None = None  # the last
        self._bodies = Bodies(MOST_BYTES)
        metrics.offers(lambda: len(extender.offers))
        self._verbs: dict[str, Callable[[bytes], Any]] = {
            "prioritize": self._prioritize,
            "preempt": self._preempt,
        }

    @property
    def verbs(self) -> Collection[str]:
        return (*FILTERS, *self._verbs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        verb = scope["path"].removeprefix(PREFIX)
        text = await self._bodies.posted(scope, receive)
        answer: Any
        if verb in FILTERS:
            answer = await self._filter(text, old=verb != FILTERS[0])
        elif verb in self._verbs:
            answer = self._verbs[verb](text)
        else:
            raise NotFound(f"there is no {scope['path']}; the verbs are {', '.join(self.verbs)}")
        await reply(send, msgspec.json.encode(answer))

    def check(self, scope: Scope) -> None:
        """Raises Refusal 503 where another manager has to be asked; an ignorable extender is then ignored."""
        if not from_here(scope) and scope.get("state", {}).get("certified") is None:
            raise Denied(
                "a client certificate is needed: set certFile and keyFile in the extender's tlsConfig, "
                "to client.crt and client.key of Secret j10ce-certificates or to a pair of --client-ca"
            )
        if not self._leads():
            raise Refusal(503, "another manager leads")
        if not self._occupants.complete:
            raise Refusal(503, "pods and nodes are still being read")

    async def _filter(self, text: bytes, *, old: bool) -> wire.FilterAnswer:
        """`old`: for schedulers that know nothing of unresolvable nodes, such as 1.20.2, and would not tell why."""
        try:
            question = wire.question(text)
            call = wire.read_filter(question)
        except Invalid as e:
            log.warning("extender.refuse", error=str(e))
            self._metrics.malformed()
            return wire.FilterAnswer(error=str(e))
        guest, answer = await self._offer(call)
        self._metrics.filtered(answer)
        log.debug(
            "extender.filter", pod=f"{guest.namespace}/{guest.name}", offered=len(call.nodes), fit=len(answer.fit)
        )
        failed = {**answer.failed, **answer.hopeless} if old else answer.failed
        fit = msgspec.json.encode(answer.fit)
        self._left = Left(question._replace(names=fit), guest, answer)
        return wire.FilterAnswer(
            node_names=Raw(fit), failed_nodes=failed, failed_and_unresolvable_nodes=answer.hopeless
        )

    async def _offer(self, call: wire.FilterCall) -> tuple[Guest, Filtered]:
        """A scheduler may have heard of a pod before us, and pods that came a moment ago may be about to be bound
        elsewhere: it waits a little for that to be seen, as a pod that is refused waits for seconds."""
        heard, until = self._occupants.heard, self._clock() + PATIENCE_S
        while True:
            epoch, now, guest = heard.epoch, self._clock(), self._occupants.asked(call.pod)
            if guest.uid or now >= until:
                answer = self._extender.filter(guest, call.nodes, now)
                if not answer.soon or now >= until:
                    return guest, answer
            with suppress(TimeoutError):
                async with asyncio.timeout(until - now):
                    await heard.moved(epoch)

    def _prioritize(self, text: bytes) -> list[wire.HostPriority]:
        question, left, extender = wire.question(text), self._left, self._extender
        if left is not None and left.question == question:
            scores = extender.prioritize(left.guest, left.answer.fit, left.answer.rows)
        else:
            call = wire.read_filter(question)
            scores = extender.prioritize(self._occupants.asked(call.pod), call.nodes)
        return list(starmap(wire.HostPriority, scores))

    def _preempt(self, text: bytes) -> wire.PreemptAnswer:
        call = wire.read_preempt(text)
        victims = {node: uids for node, (uids, _) in call.victims.items() if uids}
        guest = self._occupants.asked(call.pod)
        kept = self._extender.preempt(guest, victims)
        log.debug("extender.preempt", pod=f"{guest.namespace}/{guest.name}", offered=len(victims), kept=len(kept))
        return wire.PreemptAnswer(
            {
                node: wire.MetaVictims([wire.MetaPod(uid) for uid in uids], violations)
                for node, (uids, violations) in call.victims.items()
                if node in kept
            }
        )
