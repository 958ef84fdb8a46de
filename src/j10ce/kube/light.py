"""A Kubernetes API server over the agent's own HTTP client: lists and watches for mirrors, and what an agent writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

import h11
import msgspec

from j10ce.errors import Compacted, QosError, StoreError, Unavailable
from j10ce.http import client
from j10ce.http.client import Client, Peer
from j10ce.http.dialogue import JSON
from j10ce.http.status import status_of
from j10ce.kube.access import KubeAccess
from j10ce.kube.failure import failure
from j10ce.kube.resource import Resource
from j10ce.kube.wire import PAGE, QUIET_S, event_of, line_of, page_of, revision_of, watching
from j10ce.model.stored import Event, Listing

APPLY: Final = "application/apply-patch+yaml"
ANSWER_S: Final = 15.0


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
        """Raises Unreachable where there is no answer, and what `failure` makes of a bad one."""
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
                page = page_of(await self.ask("GET", query))
                items += page.items or ()
                more = page.metadata.continue_
                if not more:
                    break
        except (QosError, OSError) as e:
            raise self._trouble(kind, e) from None
        self.troubles[kind] = ""
        return Listing(tuple(watched.resource.readable(items)), page.metadata.resource_version)

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        """For ever, watch after watch. Raises Compacted and StoreError."""
        watched = self._watched[kind]
        while True:
            path = _query(watched, watching(since))
            try:
                async with client.stream(self.peer, path, quiet_s=QUIET_S, check=self._check) as lines:
                    self.troubles[kind] = ""
                    async for text in lines:
                        event, since = self._event(watched.resource, text, path)
                        if event is not None:
                            yield event
            except (QosError, OSError) as e:
                raise self._trouble(kind, e) from None

    def _event(self, resource: Resource, text: bytes, path: str) -> tuple[Event | None, str]:
        """(what it tells, how far we are)."""
        line = line_of(text, f"GET {path}", self._who)
        since = revision_of(line)
        event = event_of(resource, line, since)
        if event and event.type == "DELETED" and resource.kind != "Pod":
            self.deleted.add(event.object.metadata.uid)
        return event, since

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


def _query(watched: Watched, parameters: Mapping[str, object]) -> str:
    chosen = {"fieldSelector": watched.fields} if watched.fields else {}
    return f"{watched.resource.collection(watched.namespace or None)}?{urlencode({**chosen, **parameters})}"
