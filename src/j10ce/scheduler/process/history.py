"""The accounts of pods over restarts and fail-overs, and how they are shown.

Every replica follows all pods, so that whoever takes over knows what the one before it knew. For the case that all of
them restart, the leader writes the sums down in a ConfigMap every few seconds.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from j10ce.errors import Conflict, Finding, Invalid, NotFound, QosError
from j10ce.kube.client import KubeClient
from j10ce.scheduler.accounts import history, table
from j10ce.scheduler.accounts.accounts import Accounts

log = structlog.get_logger()
NAME: Final = "j10ce-qos-scheduler-history"
KEY: Final = "accounts.json.z"
EVERY_S: Final = 5.0
SHARE: Final = 0.02  # of this process's time goes into it at most
MOST_BYTES: Final = 700 << 10  # packed: a ConfigMap holds 1 MiB, in base64
MOST_READ: Final = 64 << 20  # unpacked


class _ConfigMap(Struct, rename="camel"):
    binary_data: dict[str, str] = {}


class HistoryKeeper:
    def __init__(self, client: KubeClient, accounts: Accounts, wall: Callable[[], float]) -> None:
        self._client, self.accounts, self._wall = client, accounts, wall
        self._collection = f"/api/v1/namespaces/{client.namespace}/configmaps"
        self.ready = asyncio.Event()

    # -- shown

    def table(self, version: int) -> str:
        return (table.narrow if version == 1 else table.wide)(self.accounts, self._wall())

    def data(self) -> bytes:
        return msgspec.json.encode(table.data(self.accounts, self._wall()))

    # -- kept

    async def read(self) -> None:
        """Before the first pod is seen. What cannot be read is no reason not to schedule."""
        try:
            text = await self._client.get(f"{self._collection}/{NAME}")
            packed = base64.b64decode(msgspec.json.decode(text, type=_ConfigMap).binary_data.get(KEY, ""))
            if packed:
                history.restore(msgspec.json.decode(_unpacked(packed)), self.accounts)
                log.info("history.read", accounts=len(self.accounts.by_key))
        except NotFound:
            return
        except (QosError, ValueError, zlib.error) as e:  # MsgspecError is a ValueError
            log.warning("history.lost", config_map=NAME, error=str(e), advice="accounts begin anew")

    async def follow(self, synced: Callable[[], Awaitable[None]], uids: Callable[[], Collection[str]]) -> None:
        """Once all pods are read: those that were written down and are gone have ended."""
        await synced()
        self.accounts.settle(uids(), self._wall())
        self.ready.set()

    async def keep(self) -> None:
        """For ever, by the leader."""
        written = b""
        while True:
            loop = asyncio.get_running_loop()
            before = loop.time()
            packed = self._packed()
            if packed != written and await self._write(packed):
                written = packed
            await asyncio.sleep(max(EVERY_S, (loop.time() - before) / SHARE))

    def _packed(self) -> bytes:
        """As many accounts as there is room for, those of pods that are there first."""
        most = history.MOST_ACCOUNTS
        while True:
            plain = history.taken(self.accounts, self._wall(), most)
            packed = zlib.compress(msgspec.json.encode(plain), 1)
            if len(packed) <= MOST_BYTES:
                return packed
            most = int(len(plain["accounts"]) * MOST_BYTES / len(packed) * 0.9)

    async def _write(self, packed: bytes) -> bool:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME},
            "binaryData": {KEY: base64.b64encode(packed).decode()},
        }
        try:
            try:
                await self._client.patch(f"{self._collection}/{NAME}", body, "merge")
            except NotFound:
                await self._client.create(self._collection, body)
        except Conflict:  # made by somebody else meanwhile
            return False
        except QosError as e:
            log.warning("history.fail", config_map=NAME, error=str(e))
            return False
        return True


def _unpacked(packed: bytes) -> bytes:
    """Whoever may write the ConfigMap does not fill our memory."""
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, MOST_READ)
    if unpacker.unconsumed_tail:
        raise Invalid([Finding(KEY, None, f"more than {MOST_READ >> 20} MiB", "delete the ConfigMap")], NAME)
    return text
