"""Objects whose owners are all gone end with them, as in Kubernetes: `metadata.ownerReferences` says who owns what."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import structlog

from j10ce.daemon.pace import unhurried
from j10ce.errors import Conflict, NotFound
from j10ce.manager.documents.view import View
from j10ce.manager.policies.history import holds
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import API_VERSION, Object, Owner
from j10ce.model.stored import Key, key_of
from j10ce.store.store import Store

log = structlog.get_logger()
LOOK_S: Final = 5.0


async def collect(store: Store, view: View) -> None:
    """For ever. What looks orphaned in two looks is asked for at the store itself: the view of one kind may be ahead of
    that of another."""
    await view.ready()
    doubted: set[str] = set()
    while True:
        doubted = await look(store, view, doubted)
        await asyncio.sleep(LOOK_S)


async def look(store: Store, view: View, doubted: set[str]) -> set[str]:
    """One look; the uids that looked orphaned in it, those of `doubted` are settled."""
    every: list[Object] = [obj for mirror in view.mirrors.values() for obj in mirror.held.values()]
    there = {obj.metadata.uid for obj in every}
    suspects: set[str] = set()
    async for obj in unhurried(obj for obj in every if obj.metadata.owner_references):
        if any(_foreign(owner, obj, view) or owner.uid in there for owner in obj.metadata.owner_references):
            continue
        if obj.metadata.uid not in doubted:
            suspects.add(obj.metadata.uid)
        elif await _all_gone(store, obj):
            with suppress(Conflict, NotFound):  # it moved on; the next look sees it as it is
                await store.delete(*key_of(obj), expect=obj.metadata.resource_version)
                log.info("object.collect", object=str(key_of(obj)))
    return suspects


def _foreign(owner: Owner, obj: Object, view: View) -> bool:
    """Of a kind that is not kept here, or in a namespace that nobody names: nobody can tell whether it is gone."""
    if owner.api_version != API_VERSION or owner.kind not in view.mirrors:
        return True
    return KINDS[owner.kind].namespaced and not obj.metadata.namespace


async def _all_gone(store: Store, obj: Object) -> bool:
    """An owner that nobody can read is there: it may make sense again to the release that wrote it."""
    for owner in obj.metadata.owner_references:
        namespace = obj.metadata.namespace if KINDS[owner.kind].namespaced else ""
        if await holds(store, Key(owner.kind, namespace, owner.name), owner.uid):
            return False
    return True
