"""The gate that every request passes, over REST, over gRPC and at the doors for Kubernetes' own callers:

    authenticate ──► allow ──► count ──► act ──► audit ──► answer

A front end says how it knows its caller and how it words a refusal (its `Passage`), and hands over what is to be done.
The act itself asks for its right (`roles.enter`) and announces what it writes (`roles.admit`); what it did is in the
audit log before its caller hears of it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import structlog

from j10ce.errors import QosError
from j10ce.http.status import CUT_OFF, TOO_MANY, answer_to
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.fairness.growth import growth, possible_growth
from j10ce.manager.fairness.metered import Meter, Metered
from j10ce.manager.fairness.rate_limits import Limits, share_of
from j10ce.manager.identity import NOBODY, Act, acting
from j10ce.manager.telemetry.metrics import Metrics

log = structlog.get_logger()
T = TypeVar("T")
R = TypeVar("R")
MUCH_S: Final = 0.01  # of the event loop, for an answer that is not over


class Gate:
    """`answered` hears of every answer; `holds` says whether a ticket is still good while a long answer goes on."""

    def __init__(
        self, limits: Limits, audit: Audit, answered: Callable[[Passage[Any]], None], holds: Callable[[Ticket], bool]
    ) -> None:
        self.limits, self.audit, self.answered, self.holds = limits, audit, answered, holds

    async def through(self, passage: Passage[R], act: Callable[[], Awaitable[T]]) -> T | None:
        """What `act` gives to a caller that is known and keeps to its share; None where it was refused."""
        with acting(passage.act):
            try:
                return await Metered(self._pass(passage, act), passage.meter)
            finally:
                passage.end()

    async def _pass(self, passage: Passage[R], act: Callable[[], Awaitable[T]]) -> T | None:
        outcome = await self._tried(passage, act)
        if not isinstance(outcome, Declined):
            return outcome
        if passage.code == TOO_MANY:
            await self.limits.hold_back()
        await passage.refuse(outcome.words)
        return None

    async def _tried(self, passage: Passage[R], act: Callable[[], Awaitable[T]]) -> T | Declined[R]:
        try:
            if (ticket := await passage.identify()) is not None:
                await passage.enter(ticket)
            done = await act()
            if not passage.code:  # of a front end that sends its answer when all is over
                passage.begin(200)
            return done
        except QosError as e:
            if passage.code:
                raise
            return passage.fail(e)
        except Exception as e:
            log.exception("request.fail", method=passage.method, path=passage.path)
            if passage.code:
                raise
            return passage.fail(QosError(f"internal error: {type(e).__name__}"))


def gate_of(access: Access, audit: Audit, metrics: Metrics) -> Gate:
    """The one of the API, whatever carries it."""

    def answered(passage: Passage[Any]) -> None:
        metrics.answered(passage.method, passage.code, passage.took_s)

    return Gate(access.limits, audit, answered, access.keyring.holds)


class Declined(NamedTuple, Generic[R]):
    words: R


class Passage(ABC, Generic[R]):
    """One request, from the gate to the end of its answer: what it has open, and what was recorded of it.

    Nothing gets out that nobody allowed: no answer to a request that asked for no right, no watch beyond its caller's
    share. The audit log also hears of a write that never came to an answer. A front end derives its own.
    """

    __slots__ = (
        "_anyone", "_began", "_counted", "_deletes", "_gate", "_leave", "_size", "_watches", "_watching", "act", "code",
        "limited", "meter", "method", "path", "ticket", "took_s", "writes",
    )  # fmt: skip

    def __init__(
        self,
        gate: Gate,
        method: str,
        path: str,
        source: str,
        *,
        writes: bool,
        deletes: bool = False,
        watches: bool = False,
        anyone: bool = False,
    ) -> None:
        """`watches`: as far as it is known before the answer begins. `anyone` may ask for it: no right is needed."""
        self._gate, self._began = gate, time.perf_counter()
        self.method, self.path, self.writes = method, path, writes
        self._deletes, self._watches, self._anyone = deletes, watches, anyone
        self.act = Act(source=source, announce=gate.audit.intend)
        self.meter = self.act.meter = Meter(gate.limits, NOBODY, writes)
        self.ticket: Ticket | None = None
        self.took_s: float | None = None  # once it is over; never of a watch, whose length says nothing of our speed
        self.code = self._size = 0
        self.limited = False  # whether the caller keeps to a share
        self._counted = self._watching = False
        self._leave: Callable[[], None] | None = None

    @abstractmethod
    async def identify(self) -> Ticket | None:
        """Who asks; None where that is of no matter. Raises QosError."""

    @abstractmethod
    def refusal(self, error: QosError) -> R:
        """A failure in words. Nothing of the failure itself stays in it: a refusal that waits keeps no body."""

    @abstractmethod
    async def refuse(self, refusal: R) -> None: ...

    async def enter(self, ticket: Ticket) -> None:
        """Returns when it is the caller's turn; raises Refusal 429."""
        self.ticket = ticket
        self.act.recognised(ticket.caller, ticket.name, ticket.digest)
        self.meter.caller = ticket.caller
        limits, caller, writes = self._gate.limits, ticket.caller, self.writes
        if self._watches:
            self._watch()
        if share_of(caller, writes=writes) is None:
            return
        self.limited = True
        if not self._watching:
            limits.open_answer(caller, writes=writes)
            self._counted = True
        if writes and not self._deletes:
            limits.may_store(caller)
        await self.meter.turn()

    def begin(self, code: int, problem: str = "", *, size: int = 0) -> None:
        """The answer is about to be sent; the audit log has it first. The first code counts; raises Refusal 429."""
        if self.code:
            return
        if code < 400:
            self._allow(size)
        self.code = code
        self._gate.audit.record(self.act, code, problem, method=self.method, path=self.path)
        if not self.limited:
            return
        if code < 400 and self.writes and not self.act.dry:
            self._gate.limits.stored(self.act.caller, growth(self.act))
        elif code == CUT_OFF:
            self._gate.limits.stored(self.act.caller, possible_growth(self.act))

    def fail(self, error: QosError) -> Declined[R]:
        self.begin(answer_to(error).code, str(error))
        return Declined(self.refusal(error))

    def _allow(self, size: int) -> None:
        if not self.act.verb and not self._anyone:
            raise RuntimeError("this route asks for no right: call roles.enter first")
        if self.act.verb == "watch":
            self._watch()
            self.release()
        elif size and self._counted and not self.writes:
            self._gate.limits.size_answer(self.act.caller, size, writes=False)
            self._size = size

    def _watch(self) -> None:
        if not self._watching:
            self._gate.limits.open_watch(self.act.caller)
            self._watching = True

    async def goes_on(self) -> bool:
        """Between two pieces of an answer: whether its caller may still have it. A watch that took long rests."""
        if self.meter.took_s > MUCH_S:
            if self._watching:
                await self.meter.rest()
            else:
                self.meter.pay()
        return self.ticket is None or self._gate.holds(self.ticket)

    def end(self) -> None:
        """All is said; a large answer may still wait for its reader, until `release`."""
        self.meter.settle()
        if self._watching:
            self._watching = False
            self._gate.limits.close_watch(self.act.caller)
        else:
            self.took_s = time.perf_counter() - self._began
        if self.code:
            self._gate.answered(self)
        elif self.act.announced:  # its caller gave up; what it asked for may be on its way to the disk
            self.begin(CUT_OFF)

    def until_released(self, leave: Callable[[], None]) -> None:
        """What it holds beside its answer, and gives back with it."""
        self._leave = leave

    def release(self) -> None:
        """Its reader has the answer, or is gone."""
        if self._leave is not None:
            leave, self._leave = self._leave, None
            leave()
        if self._counted:
            self._counted = False
            self._gate.limits.close_answer(self.act.caller, self._size, writes=self.writes)
