"""The verbs of a Kubernetes API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal

import msgspec

from j10ce.errors import Conflict, NotFound, StoreError, Unavailable, Unsure
from j10ce.kube.access import KubeAccess
from j10ce.kube.transport import JSON, NO_QUERY, KubeHttp, KubeRequest
from j10ce.kube.wire import PAGE, WatchLine, line_of, page_of, watching

PATIENCE_S: Final = 10.0
PAGE_S: Final = 60.0
FIELD_MANAGER: Final = "j10ce-qos"
EVICTIONS: Final = ("policy/v1", "policy/v1beta1")  # the latter before v1.22
Patch = Literal["json", "merge", "strategic", "apply"]
CONTENT: Final[Mapping[Patch, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class KubeClient:
    """Paths begin with /api or /apis. Bodies are JSON already, or made so. Answers are text, for the caller to decode.

    Errors: NotFound, Conflict, Compacted (410), Invalid (422), Denied (401, 403); Unavailable where nothing was
    changed, Unsure where a write may have happened. One that names a revision is repeated before that is said.
    """

    def __init__(
        self, access: KubeAccess, *, patience_s: float = PATIENCE_S, field_manager: str = FIELD_MANAGER
    ) -> None:
        self.namespace = access.namespace
        self._http = KubeHttp(access, patience_s=patience_s)
        self._field_manager, self._who = field_manager, access.who

    async def get(self, path: str) -> bytes:
        return await self._http.ask(KubeRequest("GET", path))

    async def revision(self, path: str) -> int:
        """At which revision a collection is, by the API server's store."""
        return int(page_of(await self._http.ask(KubeRequest("GET", path, {"limit": "1"}))).metadata.resource_version)

    async def pages(
        self, path: str, query: Mapping[str, str] = NO_QUERY, *, size: int = PAGE, once: bool = False
    ) -> AsyncIterator[tuple[str, Sequence[msgspec.Raw]]]:
        """(revision, objects) of all pages, of one instant. Raises Compacted when that instant became too long ago.

        `once`: no page is asked for again, so that a kind that is not there is NotServed at once.
        """
        ask, more = self._http.ask_once if once else self._http.ask, ""
        while True:
            wanted = {**query, "limit": str(size), **({"continue": more} if more else {})}
            page = page_of(await ask(KubeRequest("GET", path, wanted, attempt_s=PAGE_S)))
            yield page.metadata.resource_version, page.items or ()
            more = page.metadata.continue_
            if not more:
                return

    async def create(self, path: str, body: object) -> bytes:
        """In a collection."""
        return await self._write("POST", path, body, repeatable=False)

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask for the end of a pod, once. Raises Later where a disruption budget does not allow it now; NotFound and
        Conflict where it is gone, or another one has its name."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        for version in EVICTIONS:
            body = {
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace},
                "deleteOptions": {"preconditions": {"uid": uid}},
            }
            query = {"fieldManager": self._field_manager}
            try:
                await self._http.ask_once(KubeRequest("POST", path, query, msgspec.json.encode(body), JSON))
            except (Unavailable, Unsure, NotFound, Conflict):
                raise
            except StoreError:  # a server that does not know this version yet
                if version == EVICTIONS[-1]:
                    raise
            else:
                return

    async def replace(self, path: str, body: object) -> bytes:
        """`body` names the revision that it replaces."""
        return await self._write("PUT", path, body, repeatable=True)

    async def patch(
        self, path: str, body: object, how: Patch, *, repeatable: bool = False, force: bool = False
    ) -> bytes:
        """`repeatable`: `body` names a revision. `force`, of an apply: take fields from other managers."""
        query = {"force": "true"} if force else {}
        return await self._write("PATCH", path, body, query, content=CONTENT[how], repeatable=repeatable)

    async def delete(self, path: str, *, uid: str = "", revision: str = "") -> None:
        """Conflict unless it has that uid and revision, where they are given."""
        wanted = {"uid": uid, "resourceVersion": revision}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {k: v for k, v in wanted.items() if v}}
        await self._http.ask(KubeRequest("DELETE", path, body=msgspec.json.encode(body), repeatable=bool(revision)))

    async def watch(
        self, path: str, since: str, query: Mapping[str, str] = NO_QUERY
    ) -> AsyncGenerator[WatchLine, None]:
        """Every change after `since`, and bookmarks, until the server ends it. Close it after use.

        Raises Compacted, Denied, and Unavailable when the connection is lost.
        """
        request = KubeRequest("GET", path, {**query, **watching(since)})
        async with aclosing(self._http.stream(request)) as lines:
            async for text in lines:
                yield line_of(text, str(request), self._who)

    async def close(self) -> None:
        await self._http.close()

    async def _write(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, str] = NO_QUERY,
        *,
        content: str = JSON,
        repeatable: bool,
    ) -> bytes:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        owned = {**query, "fieldManager": self._field_manager}
        return await self._http.ask(KubeRequest(method, path, owned, data, content, repeatable=repeatable))
