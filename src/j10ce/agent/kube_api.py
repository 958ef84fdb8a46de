"""A Kubernetes API server over the agent's own HTTP client: lists and watches for mirrors, and what an agent writes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import urlencode

import h11
import msgspec
from msgspec import Struct, field

from j10ce.agent import client
from j10ce.agent.client import JSON, Client, Peer
from j10ce.errors import Compacted, QosError, StoreError, Unavailable
from j10ce.store.kube_access import KubeAccess
from j10ce.store.kube_failure import failure, status_of
from j10ce.store.kube_resource import Resource, Unreadable
from j10ce.store.store import Event, Listing

PAGE: Final = 500
QUIET_S: Final = 150.0  # bookmarks come every minute
WATCH_S: Final = (300, 600)  # the server ends a watch then; by chance, so that not all nodes come back together
APPLY: Final = "application/apply-patch+yaml"
ANSWER_S: Final = 15.0


class ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class Page(Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Line(Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class Bookmark(Struct):
    metadata: ListMeta


class Watched(NamedTuple):
    """A kind, and which of its objects: `fields` as in `metadata.name=node-7`."""

    resource: Resource
    fields: str = ""
    namespace: str = ""


class KubeApi:
    """`troubles` tells, by kind, why it cannot be read at present."""

    def __init__(self, access: KubeAccess, watched: Mapping[str, Watched]) -> None:
        self.peer = peer_of(access)
        self.troubles: dict[str, str] = dict.fromkeys(watched, "not asked yet")
        self.deleted: set[str] = set()  # uids whose deletion was watched: they are gone, not lost
        self._who, self._watched = access.who, watched
        self._client = Client(self.peer)

    async def ask(
        self, method: str, path: str, body: object = None, *, content: str = JSON, within_s: float = ANSWER_S
    ) -> bytes:
        """Raises Unreachable where there is no answer, and what `kube_failure` makes of a bad one."""
        head, text = await self._client.ask(method, path, body, content=content, within_s=within_s)
        self._check(head, text, f"{method} {path}")
        return text

    async def close(self) -> None:
        await self._client.close()

    async def list(self, kind: str) -> Listing:
        """All of a kind that concern this node. Raises StoreError."""
        watched, items, more = self._watched[kind], list[msgspec.Raw](), ""
        try:
            while True:
                query = _query(watched, {"limit": str(PAGE)} | ({"continue": more} if more else {}))
                page = msgspec.json.decode(await self.ask("GET", query), type=Page)
                items += page.items or ()
                more = page.metadata.continue_
                if not more:
                    break
        except (QosError, msgspec.MsgspecError, OSError) as e:
            raise self._trouble(kind, e) from None
        self.troubles[kind] = ""
        return Listing(tuple(watched.resource.readable(items)), page.metadata.resource_version)

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        """For ever, watch after watch. Raises Compacted and StoreError."""
        watched = self._watched[kind]
        while True:
            ends_s = random.randint(*WATCH_S)  # noqa: S311  chance, not a secret
            told = {"watch": "1", "resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": ends_s}
            path = _query(watched, told)
            try:
                async with client.stream(self.peer, path, quiet_s=QUIET_S, check=self._check) as lines:
                    self.troubles[kind] = ""
                    async for text in lines:
                        event, since = self._event(watched.resource, text, path, since)
                        if event is not None:
                            yield event
            except (QosError, msgspec.MsgspecError, OSError) as e:
                raise self._trouble(kind, e) from None

    def _event(self, resource: Resource, text: bytes, path: str, since: str) -> tuple[Event | None, str]:
        """(what it tells, how far we are). An object that makes no sense is read again with all others."""
        line = msgspec.json.decode(text, type=Line)
        if line.type == "BOOKMARK":
            return None, msgspec.json.decode(line.object, type=Bookmark).metadata.resource_version
        if line.type == "ERROR":
            status = status_of(bytes(line.object))
            raise failure(status.code, status, f"GET {path}", self._who)
        try:
            obj = resource.read(line.object)
        except Unreadable as e:
            raise Compacted(str(e)) from None
        if line.type == "DELETED" and resource.kind != "Pod":
            self.deleted.add(obj.metadata.uid)
        since = obj.metadata.resource_version
        return Event(line.type, obj, since), since

    def _trouble(self, kind: str, e: Exception) -> StoreError:
        if isinstance(e, Compacted):
            return e
        self.troubles[kind] = str(e)
        return Unavailable(str(e))

    def _check(self, head: h11.Response, text: bytes, what: str) -> None:
        if head.status_code >= 300:
            after = dict(head.headers).get(b"retry-after", b"").decode()
            raise failure(head.status_code, status_of(text), what, self._who, after)


def peer_of(access: KubeAccess) -> Peer:
    file = str(access.token_file) if access.token_file else ""
    return Peer(access.server, file, token=access.token, tls=access.tls, server_name=access.server_name)


def _query(watched: Watched, told: Mapping[str, object]) -> str:
    chosen = {"fieldSelector": watched.fields} if watched.fields else {}
    return f"{watched.resource.collection(watched.namespace or None)}?{urlencode({**chosen, **told})}"
