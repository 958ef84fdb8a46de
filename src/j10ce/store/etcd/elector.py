"""Leadership on etcd: whoever creates the key leads, for as long as the lease behind the key is renewed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

from j10ce.errors import StoreError
from j10ce.store.elector import ClaimElector, Claims, Lapsed
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import GRANT, KEEP_ALIVE, RANGE, REVOKE, TXN, Keyspace, changed_at, put_op, read_op

TTL_S: Final = 10


class EtcdClaim(NamedTuple):
    lease: int
    created_at: int  # etcd's revision of the key
    asked_at: float


def etcd_elector(gateway: Gateway, layout: Keyspace, identity: str, *, ttl_s: int = TTL_S) -> ClaimElector[EtcdClaim]:
    return ClaimElector(EtcdClaims(gateway, layout, identity, ttl_s), identity, ttl_s=ttl_s)


class EtcdClaims:
    def __init__(self, gateway: Gateway, layout: Keyspace, identity: str, ttl_s: int) -> None:
        self.holder = ""
        self._gateway, self._key = gateway, layout.leader
        self._identity, self._ttl_s = identity, ttl_s

    async def claimed(self) -> EtcdClaim:
        while True:
            await self._released()
            asked_at = asyncio.get_running_loop().time()
            grant = await self._gateway.ask(GRANT, pb.LeaseGrantRequest(ttl=self._ttl_s))
            try:
                created_at = await self._create(grant.id)
            except StoreError:
                await self._revoke(grant.id)
                raise
            if created_at:
                return EtcdClaim(grant.id, created_at, asked_at)
            await self._revoke(grant.id)

    async def renewed(self, claim: EtcdClaim, within_s: float) -> EtcdClaim:
        asked_at = asyncio.get_running_loop().time()
        answer = await self._gateway.ask(
            KEEP_ALIVE, pb.LeaseRequest(id=claim.lease), patience_s=within_s, attempt_s=self._ttl_s / 5
        )
        key = await self._gateway.ask(RANGE, pb.RangeRequest(key=self._key))
        if not answer.ttl or not key.kvs or key.kvs[0].create_revision != claim.created_at:
            raise Lapsed("the claim has expired in etcd, or its key was deleted")
        return claim._replace(asked_at=asked_at)

    async def release(self, claim: EtcdClaim) -> None:
        await self._revoke(claim.lease)

    async def _create(self, lease: int) -> int:
        """etcd's revision of our key, or 0 when someone was faster."""
        mine, look = put_op(self._key, self._identity.encode(), lease), read_op(self._key)
        unless_taken = pb.TxnRequest(compare=[changed_at(self._key, 0)], success=[mine], failure=[look])
        answer = await self._gateway.ask(TXN, unless_taken)
        if answer.succeeded:
            return answer.header.revision
        kvs = answer.responses[0].response_range.kvs
        return kvs[0].create_revision if kvs and kvs[0].lease == lease else 0  # the answer to an earlier try was lost

    async def _released(self) -> None:
        """Returns once nobody leads. A watch may die silently with its member, so etcd is asked now and then."""
        while True:
            answer = await self._gateway.ask(RANGE, pb.RangeRequest(key=self._key))
            if not answer.kvs:
                self.holder = ""
                return
            self.holder = answer.kvs[0].value.decode(errors="replace")
            request = pb.WatchCreateRequest(key=self._key, start_revision=answer.header.revision + 1)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ttl_s), aclosing(self._gateway.watch(request)) as answers:
                    await anext(answers)  # it stands
                    await anext(answers)  # something happened

    async def _revoke(self, lease: int) -> None:
        with suppress(StoreError):  # it expires by itself
            await self._gateway.ask(REVOKE, pb.LeaseRequest(id=lease), patience_s=0)


_: type[Claims[EtcdClaim]] = EtcdClaims
