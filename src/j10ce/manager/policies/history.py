"""History of policies: every version of a spec becomes a PolicyRevision; the last ten of each policy are kept,
and those that are stable or admitted however old they are."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.manager.documents.view import View
from j10ce.model.kinds import BUILT_IN_LABEL, MinimalReservationPolicy, Policy, PolicyRevision, QoSProfile
from j10ce.model.schema import encode
from j10ce.model.stored import Event, Key, Unreadable, key_of
from j10ce.policy.document.unrecorded import KEPT as KEPT
from j10ce.policy.lifetime import revision_of
from j10ce.store.store import ABSENT, Store

log = structlog.get_logger()
SETTLE_S: Final = 0.1
TOGETHER: Final = 16
SHIPPED: Final = "j10ce.io/shipped"  # annotation of a built-in profile: digest of the spec it came with


async def keep_history(store: Store, view: View) -> None:
    """For ever: record every generation that was seen, drop what is not kept any more.

    What comes within SETTLE_S is written together, and shares flushes of the disk: whoever changes policies one by one
    waits for their own write, not for ours.
    """
    await view.ready()
    waiting: dict[str, Policy] = {}  # by uid
    arrived = asyncio.Event()

    def take(event: Event, _: object) -> None:
        obj = event.object
        if isinstance(obj, Policy) and (event.type == "DELETED" or view.unrecorded.of(obj) or _surplus(view, obj)):
            waiting[obj.metadata.uid] = obj
            arrived.set()

    with view.heard(take):
        while True:
            await arrived.wait()
            await asyncio.sleep(SETTLE_S)
            arrived.clear()
            policies = list(waiting.values())
            waiting.clear()
            await settle(store, view, policies)


async def settle(store: Store, view: View, policies: Iterable[Policy]) -> None:
    """The history of these policies, and of no others, is what it should be."""
    room = asyncio.Semaphore(TOGETHER)
    async with asyncio.TaskGroup() as group:
        for policy in policies:
            await room.acquire()
            group.create_task(_tidy(store, view, policy)).add_done_callback(lambda _: room.release())


async def _tidy(store: Store, view: View, policy: Policy) -> None:
    """A policy that is gone leaves nothing behind; what arrives later has no owner, and is collected by that.

    One that the view has lost is asked for: it may be there, and nobody can read it.
    """
    if key_of(policy) not in view.mirrors[policy.kind].held:
        if not await holds(store, key_of(policy), policy.metadata.uid):
            await _drop(store, view.documents.revisions(policy))
        return
    await record(store, view.unrecorded.of(policy))
    await _drop(store, _surplus(view, policy))


async def record(store: Store, generations: Sequence[Policy]) -> None:
    """Put generations of one policy into the history, unless it is gone: a leader that slept may not know.

    Where nobody can read it, its history stays as it is.
    """
    if not generations:
        return
    try:
        stored = await store.get(*key_of(generations[0]))
    except (NotFound, Unreadable):
        return
    for policy in generations:
        if stored.metadata.uid == policy.metadata.uid:
            with suppress(Conflict):  # someone else was faster
                await store.put(revision_of(policy), expect=ABSENT)


def _surplus(view: View, policy: Policy) -> list[PolicyRevision]:
    """All but the last ten, the stable one, which nodes obey that a rollout has not reached, and the admitted one."""
    needed, oldest = {policy.status.rollout.stable}, policy.metadata.generation - KEPT + 1
    if isinstance(policy, MinimalReservationPolicy):
        needed.add(policy.status.admitted_generation)
    kept = view.documents.revisions(policy)
    return [r for r in kept if r.revision < oldest and r.revision not in needed]


async def ensure_built_in(store: Store, profiles: Iterable[QoSProfile]) -> None:
    """Create what is absent, and bring up to date what nobody has edited.

    So one that was deleted returns with the next leader: workloads name it, and would go unprotected. Who does not want
    it chosen edits its namespaceSelector.
    """
    for profile in profiles:
        shipped = replace(profile.metadata, annotations={**profile.metadata.annotations, SHIPPED: _digest(profile)})
        try:
            await _ensure(store, replace(profile, metadata=shipped))
        except Unreadable as e:  # another release wrote it, and may want it again: the others are made all the same
            log.error("profile.skip", profile=profile.metadata.name, error=str(e))


async def _ensure(store: Store, profile: QoSProfile) -> None:
    try:
        await store.put(profile, expect=ABSENT)
        log.debug("profile.create", profile=profile.metadata.name)
    except Conflict:
        stored = await store.get("QoSProfile", "", profile.metadata.name)
        if isinstance(stored, QoSProfile) and _untouched(stored) and stored.spec != profile.spec:
            await store.put(_upgraded(stored, profile), expect=stored.metadata.resource_version)


def _upgraded(stored: QoSProfile, shipped: QoSProfile) -> QoSProfile:
    """With the shipped spec; labels, annotations and owners are those of whoever put them there."""
    ours = {SHIPPED: shipped.metadata.annotations[SHIPPED]}
    meta = replace(stored.metadata, annotations={**stored.metadata.annotations, **ours})
    return replace(stored, metadata=meta, spec=shipped.spec)


def _untouched(stored: QoSProfile) -> bool:
    return BUILT_IN_LABEL in stored.metadata.labels and stored.metadata.annotations.get(SHIPPED) == _digest(stored)


def _digest(profile: QoSProfile) -> str:
    return hashlib.blake2b(encode(profile.spec), digest_size=8).hexdigest()


async def _drop(store: Store, revisions: Iterable[PolicyRevision]) -> None:
    for revision in revisions:
        with suppress(Conflict, NotFound):  # someone else tidied up
            await store.delete(*key_of(revision), expect=revision.metadata.resource_version)


async def holds(store: Store, key: Key, uid: str) -> bool:
    """Whether the store has this object, for all that is known."""
    try:
        return (await store.get(*key)).metadata.uid == uid
    except NotFound:
        return False
    except Unreadable:
        return True
