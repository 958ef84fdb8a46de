"""The history of policies: nothing outlives its policy, edits that nobody led are in it, and users' metadata stays."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from j10ce.manager.keepers import orphans
from j10ce.manager.policies import history
from j10ce.manager.policies.history import ensure_built_in, keep_history
from j10ce.model.kinds import (
    CpuSection,
    Hold,
    ManagedFields,
    MinimalReservationPolicy,
    Owner,
    PolicyRevision,
    QoSProfile,
    Rollout,
)
from j10ce.model.schema import parse
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.lifetime import revision_of
from j10ce.policy.profiles import builtin
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import hold, minimum, profile, reservation
from tests.manager.keepers.world import Clock, Manager, condition, edit, numbers, running, stored

KIND = "MinimalReservationPolicy"


async def test_edits_while_nobody_leads_are_in_the_history(store: MemoryStore, clock: Clock) -> None:
    """Every manager has seen them; the one that leads next writes them down."""
    async with running(follower := Manager(store, clock)):
        await store.put(reservation("db", cpu="1"))
        for n in range(2, 6):
            await edit(store, "db", minimum=minimum(cpu=str(n)))
            await follower.caught_up()
        await follower.round()
    kept = await stored(store, PolicyRevision)
    assert numbers(kept) == [1, 2, 3, 4, 5]
    assert {r.revision: r.data["minimum"]["cpu"] for r in kept} == {n: str(n) for n in range(1, 6)}


@pytest.mark.parametrize(
    ("first", "obeyed"),
    [
        pytest.param(Rollout(), [1], id="the first was for everyone"),
        pytest.param(Rollout(canary_percent=0), [], id="the first was a canary, too"),
    ],
)
async def test_a_canary_that_follows_its_policy_at_once_reaches_no_other_node(
    store: MemoryStore, clock: Clock, first: Rollout, obeyed: list[int]
) -> None:
    """Nobody leads, so neither generation is in the history; the manager that serves the node has seen both."""
    async with running(follower := Manager(store, clock)):
        await store.put(reservation("db", cpu="1", rollout=first))
        await edit(store, "db", minimum=minimum(cpu="2"), rollout=Rollout(canary_percent=0))
        await follower.caught_up()
        assert await generations(follower) == obeyed
        for _ in range(2):
            await follower.round()  # it leads now
        assert await generations(follower) == obeyed
    assert numbers(await stored(store, PolicyRevision)) == [1, 2]


async def generations(manager: Manager, node: str = "n1") -> list[int]:
    """Of the policies that a node has to obey."""
    document = parse((await manager.view.document(node)).data, NodeDocument)
    return [policy.metadata.generation for policy in document.policies]


async def test_a_policy_deleted_while_nobody_leads_leaves_no_revision(store: MemoryStore, clock: Clock) -> None:
    async with running(first := Manager(store, clock)):
        await store.put(reservation("db", cpu="1"))
        for n in range(2, 5):
            await first.round()
            await edit(store, "db", minimum=minimum(cpu=str(n)))
        await first.round()
    assert len(await stored(store, PolicyRevision)) == 4
    await store.delete(KIND, "default", "db")
    async with running(second := Manager(store, clock)):
        for _ in range(2):
            await second.round()
    assert await stored(store, PolicyRevision) == []


async def test_a_leader_that_slept_records_nothing_of_policies_that_are_gone(store: MemoryStore, clock: Clock) -> None:
    made = await store.put(reservation("db", cpu="1"))
    assert isinstance(made, MinimalReservationPolicy)
    await store.delete(KIND, "default", "db")
    await history.record(store, (made,))
    again = await store.put(reservation("db", cpu="2"))
    await history.record(store, (made,))
    assert again.metadata.uid != made.metadata.uid
    assert await stored(store, PolicyRevision) == []


async def test_a_policy_that_is_deleted_takes_its_history_along(manager: Manager, store: MemoryStore) -> None:
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(keep_history(store, manager.view))
        await store.put(reservation("db", cpu="1"))
        while not await stored(store, PolicyRevision):
            await manager.view.objects.moved(manager.view.objects.epoch)
        await store.delete(KIND, "default", "db")
        while manager.view.all(PolicyRevision):
            await manager.view.objects.moved(manager.view.objects.epoch)
        keeping.cancel()
    assert await stored(store, PolicyRevision) == []


async def rewritten(store: MemoryStore, **data: object) -> None:
    """The history of `db`, as another release would have written it."""
    (revision,) = await stored(store, PolicyRevision)
    await store.put(replace(revision, data={**revision.data, **data}))


async def test_what_a_later_release_has_recorded_is_obeyed_without_what_nobody_knows(
    manager: Manager, store: MemoryStore
) -> None:
    await store.put(reservation("db", cpu="1"))
    await manager.round()
    await rewritten(store, later={"of": "another release"})
    await edit(store, "db", minimum=minimum(cpu="2"), rollout=Rollout(canary_percent=0))
    for _ in range(2):
        await manager.round()
    (obeyed,) = manager.document("n0").policies
    assert (obeyed.metadata.generation, str(obeyed.spec.minimum.cpu)) == (1, "1")
    assert manager.policy("db").status.rollout.stable == 1


async def test_history_that_nobody_can_read_stops_nobody(manager: Manager, store: MemoryStore) -> None:
    """The policy itself is obeyed as it is: better than no floor at all."""
    await store.put(reservation("db", cpu="1"))
    await manager.round()
    await rewritten(store, minimum="no amounts")
    await edit(store, "db", minimum=minimum(cpu="2"), rollout=Rollout(canary_percent=0))
    await store.put(reservation("other", cpu="1"))
    for _ in range(2):
        await manager.round()
    obeyed = {p.metadata.name: str(p.spec.minimum.cpu) for p in manager.document("n0").policies}
    assert obeyed == {"db": "2", "other": "1"}
    assert condition(manager.policy("other"), "Admitted").status == "True"


def owned(*owners: tuple[str, str, str], api: str = "j10ce.io/v1alpha1") -> tuple[Owner, ...]:
    return tuple(Owner(api_version=api, kind=kind, name=name, uid=uid) for kind, name, uid in owners)


async def collected(manager: Manager) -> None:
    doubted: set[str] = set()
    for _ in range(3):
        await manager.caught_up()
        doubted = await orphans.look(manager.store, manager.view, doubted)
    await manager.caught_up()


async def test_what_users_own_ends_with_its_last_owner(manager: Manager, store: MemoryStore) -> None:
    db, web = await store.put(reservation("db", cpu="1")), await store.put(reservation("web", cpu="1"))
    both = owned((KIND, "db", db.metadata.uid), (KIND, "web", web.metadata.uid))
    made = hold("workload/default/db", "cpu.max")
    await store.put(replace(made, metadata=replace(made.metadata, namespace="default", owner_references=both)))
    await collected(manager)
    await store.delete(KIND, "default", "db")
    await collected(manager)
    assert len(await stored(store, Hold)) == 1
    await store.delete(KIND, "default", "web")
    await store.put(reservation("web", cpu="1"))  # another of the same name is no owner
    await collected(manager)
    assert await stored(store, Hold) == []


async def test_owners_that_are_kept_elsewhere_are_not_doubted(manager: Manager, store: MemoryStore) -> None:
    made = hold("node", "cpu.max")
    elsewhere = owned(("Node", "n1", "u-1"), api="v1")
    await store.put(replace(made, metadata=replace(made.metadata, owner_references=elsewhere)))
    await collected(manager)
    assert len(await stored(store, Hold)) == 1


async def test_what_has_no_namespace_outlasts_an_owner_that_has_one(manager: Manager, store: MemoryStore) -> None:
    """As in Kubernetes: nobody can tell which namespace is meant."""
    db = await store.put(reservation("db", cpu="1"))
    owners = owned((KIND, "db", db.metadata.uid))
    made = profile("gold")
    await store.put(replace(made, metadata=replace(made.metadata, owner_references=owners)))
    await store.delete(KIND, "default", "db")
    await collected(manager)
    assert [p.metadata.name for p in await stored(store, QoSProfile)] == ["gold"]


async def test_an_owner_that_the_view_has_not_heard_of_yet_is_asked_for(manager: Manager, store: MemoryStore) -> None:
    """Kinds are followed one by one: a revision may be known before its policy."""
    made = await store.put(reservation("db", cpu="1"))
    assert isinstance(made, MinimalReservationPolicy)
    await store.put(revision_of(made))
    await manager.caught_up()
    manager.view.mirrors[KIND].held.clear()
    (uid,) = await orphans.look(store, manager.view, set())
    await orphans.look(store, manager.view, {uid})
    assert len(await stored(store, PolicyRevision)) == 1


async def test_an_upgrade_of_a_built_in_profile_keeps_what_users_put_on_it(store: MemoryStore) -> None:
    await ensure_built_in(store, builtin())
    ls = await store.get("QoSProfile", "", "ls")
    theirs = replace(
        ls.metadata,
        labels={**ls.metadata.labels, "team": "platform"},
        annotations={**ls.metadata.annotations, "note": "ask us"},
        managed_fields=(ManagedFields(manager="kubectl-label"),),
        owner_references=owned(("QoSProfile", "be", "u-1")),
    )
    await store.put(replace(ls, metadata=theirs))
    upgrade = [replace(p, spec=replace(p.spec, cpu=CpuSection(weight=77))) for p in builtin()]
    for _ in range(2):
        await ensure_built_in(store, upgrade)
    obj = await store.get("QoSProfile", "", "ls")
    assert isinstance(obj, QoSProfile)
    assert obj.spec.cpu.weight == 77
    assert (obj.metadata.labels, obj.metadata.owner_references) == (theirs.labels, theirs.owner_references)
    assert obj.metadata.managed_fields == theirs.managed_fields
    assert obj.metadata.annotations["note"] == "ask us"
    later = [replace(p, spec=replace(p.spec, cpu=CpuSection(weight=88))) for p in builtin()]
    await ensure_built_in(store, later)
    again = await store.get("QoSProfile", "", "ls")
    assert isinstance(again, QoSProfile)
    assert again.spec.cpu.weight == 88, "what nobody edited follows every upgrade"
