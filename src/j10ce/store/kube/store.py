"""The store of a Kubernetes cluster: our CRDs, and what we read of its own kinds.

The API server decides: it stamps, counts generations, compares revisions and keeps the halves of an object apart. A
write is one patch that replaces what its caller owns and nothing else; finalizers and fields of others stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from j10ce.errors import Compacted, Conflict, NotFound, StoreError, Unsupported
from j10ce.http.retry import pauses
from j10ce.kube.access import KubeAccess
from j10ce.kube.client import PATIENCE_S, KubeClient
from j10ce.kube.resource import Resource, resources
from j10ce.kube.wire import PAGE
from j10ce.model.kinds import Object, PolicyRevision
from j10ce.model.stored import Key, Listing, Part, Unreadable, key_of
from j10ce.store.elector import Elector
from j10ce.store.kube.body import changes, creation
from j10ce.store.kube.elector import Wall, kube_elector
from j10ce.store.kube.feed import Feed
from j10ce.store.revise import check, revise
from j10ce.store.store import ABSENT, ANY, Expect, Store
from j10ce.store.table import KEPT_CHANGES, DeferredWatch


class KubeStore:
    """Namespaces are the cluster's: NotFound where one is missing."""

    def __init__(
        self,
        access: KubeAccess,
        wall: Wall,
        *,
        kept: int = KEPT_CHANGES,
        patience_s: float = PATIENCE_S,
        kinds: Mapping[str, Resource] | None = None,
    ) -> None:
        """`kinds`: what it reads, where that is not what a manager does."""
        self.client = KubeClient(access, patience_s=patience_s)
        self._wall = wall
        self._resources = resources() if kinds is None else kinds
        self._feeds = {
            kind: Feed(self.client, resource, self._begin, kept=kept) for kind, resource in self._resources.items()
        }
        self._wanted: asyncio.Queue[Feed] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        resource = self._resource(kind)
        obj: Object = resource.read(await self.client.get(resource.path(namespace, name)))
        return obj

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        try:
            return await self._listed(self._resource(kind), namespace)
        except Compacted:  # more pages than the API server remembers that instant
            return await self._listed(self._resource(kind), namespace, size=0)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        """Only a write without expectations reads first. One under a revision leaves it to the API server to see that
        nothing changes; it may find that a default of a newer CRD does."""
        if part == "status" and isinstance(obj, PolicyRevision):
            raise StoreError("a PolicyRevision has no status")
        if isinstance(expect, str) and expect.isdecimal() and int(expect):
            return await self._change(obj, part, expect)
        if expect is ABSENT and part == "spec":
            return await self._create(obj)
        if expect is ANY:
            return await self._overwrite(obj, part)
        check(await self.get(*key_of(obj)), key_of(obj), expect)
        raise Conflict(f"{key_of(obj)} was never at revision {expect}: read it again")

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        """The last state, as it was before its end; with a finalizer that is still to come."""
        resource, key = self._resource(kind), Key(kind, namespace, name)
        while True:
            old = await self.get(*key)
            check(old, key, expect)
            meta = old.metadata
            try:
                await self.client.delete(resource.path(namespace, name), uid=meta.uid, revision=meta.resource_version)
                return old
            except Conflict:
                if expect is not ANY:
                    raise

    def watch(self, kind: str, since: str) -> DeferredWatch:
        self._resource(kind)
        return DeferredWatch(partial(self._feeds[kind].watch, since))

    def elector(self, identity: str) -> Elector:
        return kube_elector(self.client, identity, self._wall)

    @property
    def kinds(self) -> Sequence[str]:
        """That it reads, in the order in which they were given."""
        return list(self._resources)

    def unreadable(self) -> Mapping[str, int]:
        """How many objects of each kind are stored and make no sense, as far as was seen."""
        return {kind: len(resource.unread) for kind, resource in self._resources.items()}

    def refused(self) -> Mapping[str, str]:
        """What the API server does not let us follow, and why: `watch Pod`."""
        return {f"watch {kind}": feed.refused for kind, feed in self._feeds.items() if feed.refused}

    async def close(self) -> None:
        for feed in self._feeds.values():
            feed.close()
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.client.close()

    def _resource(self, kind: str) -> Resource:
        if kind not in self._resources:
            raise Unsupported(f"{kind} on Kubernetes", needs="another store: sqlite or etcd")
        return self._resources[kind]

    def _begin(self, feed: Feed) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="kube-store")
        self._wanted.put_nowait(feed)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task((await self._wanted.get()).run())

    async def _listed(self, resource: Resource, namespace: str | None, *, size: int = PAGE) -> Listing:
        objects: list[Object] = []
        unread: set[Key] = set()
        revision = ""
        async for at, texts in self.client.pages(resource.collection(namespace), size=size):
            objects += resource.page(texts, unread)
            revision = revision or at
        if namespace is None:
            resource.unread &= unread
        return Listing(tuple(sorted(objects, key=key_of)), revision)

    async def _overwrite(self, obj: Object, part: Part) -> Object:
        for pause_s in pauses(first_s=0.005):
            try:
                old = await self.get(*key_of(obj))
                if revise(old, obj, expect=ANY, part=part, revision="", wall=0) is old:
                    return old
                return await self._change(obj, part, old.metadata.resource_version)
            except Unreadable:
                return await self._change(obj, part)
            except Conflict:
                await asyncio.sleep(pause_s)
            except NotFound:
                if part == "status":
                    raise
                with suppress(Conflict):  # someone was faster
                    return await self._create(obj)
        raise AssertionError("unreachable")

    async def _create(self, obj: Object) -> Object:
        resource = self._resource(obj.kind)
        made: Object = resource.read(
            await self.client.create(resource.collection(obj.metadata.namespace), creation(obj))
        )
        return made

    async def _change(self, obj: Object, part: Part, revision: str = "") -> Object:
        resource = self._resource(obj.kind)
        path = resource.path(obj.metadata.namespace, obj.metadata.name) + ("/status" if part == "status" else "")
        steps = changes(obj, part, revision)
        changed: Object = resource.read(await self.client.patch(path, steps, "json", repeatable=bool(revision)))
        return changed


_: type[Store] = KubeStore
