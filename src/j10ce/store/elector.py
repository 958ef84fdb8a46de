"""Leadership: of all managers on one store, one runs the keepers.

A store that several processes use keeps a claim that has to be renewed; a store of one process has one leader for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar, runtime_checkable

import structlog

from j10ce.errors import QosError, StoreError
from j10ce.http.retry import pauses

log = structlog.get_logger()
Work = Callable[[], Awaitable[None]]


class Elector(Protocol):
    leader: bool  # whether this process leads

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; empty during an election."""
        ...

    async def lead(self, work: Work) -> None:
        """Run `work` while this process leads, cancel it when leadership is lost, start it again when it is back.

        Runs until cancelled, and then hands leadership over at once. A leader that cannot renew its claim cancels
        `work` before another process can lead. When `work` ends or raises by itself, so does `lead`.
        """
        ...


@runtime_checkable
class Shared(Protocol):
    """A store that several processes may use at a time."""

    def elector(self, identity: str) -> Elector: ...


class Alone:
    """The elector of a store that serves one process: it always leads."""

    def __init__(self, identity: str) -> None:
        self.leader = self.certain = True
        self.holder = identity

    async def lead(self, work: Work) -> None:
        await work()


class Lapsed(StoreError):
    """A claim was not renewed in time, or is someone else's."""


class LeaderClaim(Protocol):
    @property
    def asked_at(self) -> float:
        """By the event loop's clock; the claim's time to live counts from here, at least."""
        ...


C = TypeVar("C", bound=LeaderClaim)


class Claims(Protocol[C]):
    """`holder`: who leads, as far as was seen while waiting."""

    holder: str

    async def claimed(self) -> C:
        """Returns once this process holds the claim. Raises QosError when the store is away or refuses."""
        ...

    async def renewed(self, claim: C, within_s: float) -> C:
        """Raises Lapsed when it is lost, and QosError."""
        ...

    async def release(self, claim: C) -> None:
        """For others to take at once; raises QosError."""
        ...


class ClaimElector(Generic[C]):
    """`ttl_s`: how long a leader that vanished keeps others from leading. It renews three times as often."""

    def __init__(self, claims: Claims[C], identity: str, *, ttl_s: float) -> None:
        self.leader = False
        self._claims, self._identity, self._ttl_s = claims, identity, ttl_s
        self._claim: C | None = None

    @property
    def holder(self) -> str:
        return self._identity if self.leader else self._claims.holder

    @property
    def certain(self) -> bool:
        """Whether this process leads by the machine's clock, too: one that was stopped may go on before it knows."""
        claim = self._claim
        return self.leader and claim is not None and time.monotonic() < claim.asked_at + self._ttl_s

    async def lead(self, work: Work) -> None:
        tries = pauses()
        while True:
            try:
                claim = await self._claims.claimed()
            except QosError as e:
                log.warning("leader.fail", error=str(e))
                await asyncio.sleep(next(tries))
                continue
            tries = pauses()
            self._claim = claim
            try:
                return await self._work(work)
            except Lapsed as e:
                log.warning("leader.stop", holder=self._identity, reason=str(e))
            finally:
                self.leader, self._claims.holder = False, ""
                with suppress(QosError):  # it expires by itself
                    await self._claims.release(self._claim)

    async def _work(self, work: Work) -> None:
        """Raises Lapsed after `work` was cancelled for it, or what `work` raises."""
        self.leader = True
        log.info("leader.start", holder=self._identity)
        try:
            async with asyncio.TaskGroup() as group:
                renewing = group.create_task(self._renew())
                await work()
                renewing.cancel()
        except BaseExceptionGroup as e:
            others = [error for error in e.exceptions if not isinstance(error, Lapsed)]
            raise (others or e.exceptions)[0] from None

    async def _renew(self) -> None:
        """For ever, when a third of the time to live is over; raises Lapsed a fifth of it before the claim may end."""
        loop = asyncio.get_running_loop()
        while self._claim:
            await asyncio.sleep(self._claim.asked_at + self._ttl_s / 3 - loop.time())
            left_s = self._claim.asked_at + 0.8 * self._ttl_s - loop.time()
            try:
                async with asyncio.timeout(left_s):
                    self._claim = await self._claims.renewed(self._claim, left_s)
            except Lapsed:
                raise
            except (QosError, TimeoutError) as e:
                why = str(e) or "no answer"
                raise Lapsed(f"the claim was not renewed within {self._ttl_s:g} s: {why}") from None


_: tuple[type[Elector], ...] = (Alone, ClaimElector)
