"""What keeps etcd small, and how full it is. Nothing here writes a key: it must work when none can be written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from j10ce.errors import Compacted, StoreError
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import COMPACT, RANGE, STATUS, Keyspace
from j10ce.store.etcd.writer import FENCE_TTL_S, Writer

COMPACT_EVERY_S: Final = 300.0  # so that the last 5 to 10 minutes are kept
LOOK_EVERY_S: Final = 10.0
FILLING: Final = 0.7  # of the quota: from here on it is reported, and less history is kept
log = structlog.get_logger()


async def keep_fence(writer: Writer) -> None:
    """For ever."""
    while True:
        await asyncio.sleep(FENCE_TTL_S / 4)
        try:
            await writer.keep_fence()
        except StoreError as e:
            log.warning("store.fail", error=str(e))


async def compact(gateway: Gateway, layout: Keyspace, every_s: float = COMPACT_EVERY_S) -> None:
    """For ever: each round notes where etcd is, and compacts up to the note of the round before.

    Every manager does so by its own clock; one that comes second finds nothing left to do. Compaction concerns a whole
    etcd, whoever else may use it.
    """
    noted = 0
    while True:
        try:
            noted = await compact_to(gateway, layout, noted)
        except StoreError as e:
            log.warning("store.fail", error=str(e))
        await asyncio.sleep(every_s)


async def compact_to(gateway: Gateway, layout: Keyspace, noted: int) -> int:
    """Forget what was before a revision; returns etcd's present one."""
    present = (await gateway.ask(RANGE, pb.RangeRequest(key=layout.mark))).header.revision
    if noted:
        try:
            await gateway.ask(COMPACT, pb.CompactionRequest(revision=noted))
        except Compacted:
            pass  # someone else was first
    return present


class Fill:
    """How full etcd is: what its objects and their history take of its quota, and what we wrote since we looked."""

    def __init__(self, gateway: Gateway, layout: Keyspace, quota: int, written: Callable[[], int] = int) -> None:
        """`written`: the bytes that we have written in all."""
        self._gateway, self._layout, self._quota, self._written = gateway, layout, quota, written
        self._used, self._used_at = 0, 0  # in use, when so much was written
        self._noted = 0

    @property
    def share(self) -> float:
        return (self._used + self._written() - self._used_at) / self._quota

    async def watch(self, every_s: float = LOOK_EVERY_S) -> None:
        """For ever."""
        while True:
            try:
                await self.look()
            except StoreError as e:
                log.warning("store.fail", error=str(e))
            await asyncio.sleep(every_s)

    async def look(self) -> None:
        """While it fills, history is forgotten at once: those who watch us are served from our own."""
        before, written = self._used / self._quota, self._written()
        status = await self._gateway.ask(STATUS, pb.Nothing())
        self._quota = status.db_size_quota or self._quota
        self._used, self._used_at = status.db_size_in_use or status.db_size, written
        share = self._used / self._quota
        if before < FILLING <= share:
            log.warning("store.filling", used=f"{share:.0%}", bytes=self._used, quota=self._quota)
        elif share < FILLING <= before:
            log.info("store.emptied", used=f"{share:.0%}")
        if share >= FILLING:
            self._noted = await compact_to(self._gateway, self._layout, self._noted)
