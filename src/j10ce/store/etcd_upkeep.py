"""What keeps etcd small: old revisions are compacted, by whichever manager comes first."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from j10ce.errors import StoreError
from j10ce.store.etcd_gateway import Gateway
from j10ce.store.etcd_wire import COMPACT, TXN, Layout, changed_at, put_op, read_op
from j10ce.store.etcd_writer import FENCE_TTL_S, Writer
from j10ce.store.proto import etcd_pb2 as pb

COMPACT_EVERY_S: Final = 300.0  # so that the last 5 to 10 minutes are kept
log = structlog.get_logger()


async def keep_fence(writer: Writer) -> None:
    """For ever."""
    while True:
        await asyncio.sleep(FENCE_TTL_S / 4)
        try:
            await writer.keep_fence()
        except StoreError as e:
            log.warning("store.fail", error=str(e))


async def compact(gateway: Gateway, layout: Layout, every_s: float = COMPACT_EVERY_S) -> None:
    """For ever: in each round one of all managers notes the present, and compacts up to the note of the round before.

    Compaction concerns a whole etcd, whoever else may use it.
    """
    noted_at = 0
    while True:
        try:
            noted_at = await _round(gateway, layout, noted_at)
        except StoreError as e:
            log.warning("store.fail", error=str(e))
        await asyncio.sleep(every_s)


async def _round(gateway: Gateway, layout: Layout, noted_at: int) -> int:
    """etcd's revision of the latest note."""
    key = layout.compaction
    unless_noted = pb.TxnRequest(
        compare=[changed_at(key, noted_at)], success=[put_op(key, b"")], failure=[read_op(key)]
    )
    answer = await gateway.ask(TXN, unless_noted)
    if not answer.succeeded:  # someone else was first
        kvs = answer.responses[0].response_range.kvs
        return kvs[0].mod_revision if kvs else 0
    if noted_at:
        await gateway.ask(COMPACT, pb.CompactionRequest(revision=noted_at))
    return answer.header.revision
