"""Leadership on etcd: whoever creates the key leads, for as long as the lease behind the key is renewed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

import structlog

from j10ce.errors import StoreError
from j10ce.store.elector import Elector, Work
from j10ce.store.etcd_gateway import Gateway
from j10ce.store.etcd_wire import (
    Compare,
    Layout,
    Lease,
    LeaseLine,
    Op,
    Put,
    Range,
    RangeAnswer,
    Txn,
    TxnAnswer,
    Watch,
    WatchCreate,
)
from j10ce.store.patience import pauses

TTL_S: Final = 10
log = structlog.get_logger()


class Claim(NamedTuple):
    lease: int
    created_at: int  # etcd's revision of the key
    asked_at: float  # the lease's time to live counts from here, at least


class Lapsed(StoreError):
    """A claim could not be renewed in time."""


class EtcdElector:
    """`ttl_s`: how long a leader that vanished keeps others from leading. It renews three times as often."""

    def __init__(self, gateway: Gateway, layout: Layout, identity: str, *, ttl_s: int = TTL_S) -> None:
        self.leader = False
        self.holder = ""
        self._gateway, self._key = gateway, layout.leader
        self._identity, self._ttl_s = identity, ttl_s
        self._created_at = 0

    async def lead(self, work: Work) -> None:
        tries = pauses()
        while True:
            try:
                claim = await self._claimed()
            except StoreError as e:
                log.warning("leader.fail", error=str(e))
                await asyncio.sleep(next(tries))
                continue
            tries = pauses()
            try:
                return await self._work(claim, work)
            except Lapsed as e:
                log.warning("leader.stop", holder=self._identity, reason=str(e))
            finally:
                self.leader, self.holder = False, ""
                await self._revoke(claim.lease)

    async def still_leads(self) -> bool:
        """Asks etcd. What this process decided before the call, it decided as the leader; raises Unavailable."""
        answer = await self._gateway.ask("kv/range", Range(self._key), RangeAnswer)
        return self.leader and bool(answer.kvs) and answer.kvs[0].create_revision == self._created_at

    async def _work(self, claim: Claim, work: Work) -> None:
        """Raises Lapsed after `work` was cancelled for it, or what `work` raises."""
        self.leader, self.holder, self._created_at = True, self._identity, claim.created_at
        log.info("leader.start", holder=self._identity)
        try:
            async with asyncio.TaskGroup() as group:
                renewing = group.create_task(self._renew(claim))
                await work()
                renewing.cancel()
        except BaseExceptionGroup as e:
            others = [error for error in e.exceptions if not isinstance(error, Lapsed)]
            raise (others or e.exceptions)[0] from None

    async def _renew(self, claim: Claim) -> None:
        """For ever; raises Lapsed a fifth of the time to live before the claim may end."""
        loop = asyncio.get_running_loop()
        safe_until = claim.asked_at + 0.8 * self._ttl_s
        while True:
            asked_at = loop.time()
            request, left_s = Lease(claim.lease), safe_until - asked_at
            try:
                async with asyncio.timeout(left_s):
                    answer = await self._gateway.ask(
                        "lease/keepalive", request, LeaseLine, patience_s=left_s, attempt_s=self._ttl_s / 5
                    )
            except (StoreError, TimeoutError) as e:
                raise Lapsed(f"the claim was not renewed within {self._ttl_s} s: {str(e) or 'no answer'}") from None
            if not answer.result.TTL:
                raise Lapsed("the claim has expired in etcd")
            safe_until = asked_at + 0.8 * self._ttl_s
            await asyncio.sleep(self._ttl_s / 3)

    async def _claimed(self) -> Claim:
        """Returns once this process holds the key; raises StoreError."""
        while True:
            await self._released()
            asked_at = asyncio.get_running_loop().time()
            grant = await self._gateway.ask("lease/grant", Lease(TTL=self._ttl_s), Lease)
            try:
                created_at = await self._create(grant.ID)
            except StoreError:
                await self._revoke(grant.ID)
                raise
            if created_at:
                return Claim(grant.ID, created_at, asked_at)
            await self._revoke(grant.ID)

    async def _create(self, lease: int) -> int:
        """etcd's revision of our key, or 0 when someone was faster."""
        mine = Op(request_put=Put(self._key, self._identity.encode(), lease))
        look = Op(request_range=Range(self._key))
        answer = await self._gateway.ask("kv/txn", Txn((Compare(self._key, 0),), (mine,), (look,)), TxnAnswer)
        if answer.succeeded:
            return answer.header.revision
        kvs = answer.responses[0].response_range.kvs
        return kvs[0].create_revision if kvs and kvs[0].lease == lease else 0  # the answer to an earlier try was lost

    async def _released(self) -> None:
        """Returns once nobody leads. A watch may die silently with its member, so etcd is asked now and then."""
        while True:
            answer = await self._gateway.ask("kv/range", Range(self._key), RangeAnswer)
            if not answer.kvs:
                self.holder = ""
                return
            self.holder = answer.kvs[0].value.decode(errors="replace")
            request = Watch(WatchCreate(self._key, start_revision=answer.header.revision + 1))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ttl_s), aclosing(self._gateway.lines("watch", request)) as lines:
                    await anext(lines)  # it stands
                    await anext(lines)  # something happened

    async def _revoke(self, lease: int) -> None:
        with suppress(StoreError):  # it expires by itself
            await self._gateway.ask("lease/revoke", Lease(lease), Lease, patience_s=0)


_: type[Elector] = EtcdElector
