"""History of policies: every version of a spec becomes a PolicyRevision; the last ten of each policy are kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound
from j10ce.model.kinds import BUILT_IN_LABEL, Meta, MinimalReservationPolicy, Owner, PolicyRevision, QoSProfile
from j10ce.model.schema import encode, plain
from j10ce.store.mirror import mirror
from j10ce.store.store import ABSENT, Event, Store

log = structlog.get_logger()
Policy = QoSProfile | MinimalReservationPolicy

POLICIES: Final = (QoSProfile, MinimalReservationPolicy)
KEPT: Final = 10
SETTLE_S: Final = 0.1
TOGETHER: Final = 16
SYSTEM_NAMESPACE: Final = "j10ce-system"  # where the revisions of kinds without a namespace live
SHIPPED: Final = "j10ce.io/shipped"  # annotation of a built-in profile: digest of the spec it came with


async def keep_history(store: Store, kind: str, known: Callable[[Policy], bool] = lambda _: False) -> None:
    """Follow one kind of policy for ever. Revisions of a policy end with it.

    What comes within SETTLE_S is written together, and shares flushes of the disk: whoever changes policies one by one
    waits for their own write, not for ours. A store decides writes in the order they began. What is `known` to be
    recorded when we begin is left alone.
    """
    waiting: list[Event] = []
    arrived = asyncio.Event()

    async def write() -> None:
        while True:
            await arrived.wait()
            await asyncio.sleep(SETTLE_S)
            arrived.clear()
            events = waiting[:]
            waiting.clear()
            await _record_all(store, events)

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        async for event in mirror(store, kind).changes():
            if isinstance(event.object, POLICIES) and not (event.type == "ADDED" and known(event.object)):
                waiting.append(event)
                arrived.set()


async def _record_all(store: Store, events: Iterable[Event]) -> None:
    room = asyncio.Semaphore(TOGETHER)
    async with asyncio.TaskGroup() as group:
        for event in events:
            if isinstance(event.object, POLICIES):
                await room.acquire()
                group.create_task(record(store, event, event.object)).add_done_callback(lambda _: room.release())


async def record(store: Store, event: Event, policy: Policy) -> None:
    """The stable revision is kept however old it is: nodes that a rollout has not reached obey it."""
    generation, stable = policy.metadata.generation, policy.status.rollout.stable
    if event.type == "DELETED":
        await _drop(store, policy, {stable, *range(max(1, generation - 2 * KEPT), generation + 1)} - {0})
        return
    old = event.old if isinstance(event.old, POLICIES) else None
    if old is not None and old.metadata.generation == generation:
        if 0 < old.status.rollout.stable <= generation - KEPT and old.status.rollout.stable != stable:
            await _drop(store, policy, [old.status.rollout.stable])
        return
    try:
        await store.put(revision_of(policy), expect=ABSENT)
    except Conflict:
        return  # recorded before a restart
    # One falls out; more where a compacted watch skipped generations.
    await _drop(store, policy, set(range(max(1, generation - 2 * KEPT), generation - KEPT + 1)) - {stable})


async def ensure_built_in(store: Store, profiles: Iterable[QoSProfile]) -> None:
    """Create what is absent, and bring up to date what nobody has edited.

    So one that was deleted returns with the next leader: workloads name it, and would go unprotected. Who does not want
    it chosen edits its namespaceSelector.
    """
    for profile in profiles:
        shipped = replace(profile.metadata, annotations={**profile.metadata.annotations, SHIPPED: _digest(profile)})
        profile = replace(profile, metadata=shipped)
        try:
            await store.put(profile, expect=ABSENT)
            log.debug("profile.create", profile=profile.metadata.name)
        except Conflict:
            found = await store.get("QoSProfile", "", profile.metadata.name)
            if isinstance(found, QoSProfile) and _untouched(found) and found.spec != profile.spec:
                await store.put(profile, expect=found.metadata.resource_version)


def _untouched(found: QoSProfile) -> bool:
    return BUILT_IN_LABEL in found.metadata.labels and found.metadata.annotations.get(SHIPPED) == _digest(found)


def _digest(profile: QoSProfile) -> str:
    return hashlib.blake2b(encode(profile.spec), digest_size=8).hexdigest()


def revision_of(policy: Policy) -> PolicyRevision:
    meta = policy.metadata
    owner = Owner(api_version=policy.api_version, kind=policy.kind, name=meta.name, uid=meta.uid)
    return PolicyRevision(
        metadata=Meta(
            name=_name(policy, meta.generation),
            namespace=meta.namespace or SYSTEM_NAMESPACE,
            owner_references=(owner,),
        ),
        revision=meta.generation,
        data=plain(policy.spec),
    )


def _name(policy: Policy, generation: int) -> str:
    """By uid, too: a policy that was deleted and made again starts a history of its own."""
    return f"{policy.metadata.name[:200].rstrip('-.')}-{policy.metadata.uid[:8]}-{generation}"


async def _drop(store: Store, policy: Policy, generations: Iterable[int]) -> None:
    for generation in generations:
        try:
            await store.delete(
                "PolicyRevision", policy.metadata.namespace or SYSTEM_NAMESPACE, _name(policy, generation)
            )
        except NotFound:
            continue  # someone else tidied up
