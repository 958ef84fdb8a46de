"""An API server or its etcd that is killed, paused or half installed: nothing is lost, and no answer is wrong."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytest

from j10ce.errors import StoreError, Unavailable
from j10ce.model.kinds import Object
from j10ce.store.kube.elector import kube_elector
from j10ce.store.kube.store import KubeStore
from j10ce.store.mirror import Mirror
from j10ce.testing.build import reservation
from j10ce.testing.conformance_elector import LONG_S, Candidate, first
from j10ce.testing.conformance_store import KIND, soon
from tests.etcd.chaos import KEYS, torture
from tests.etcd.history import is_linearizable
from tests.kube.manifests import definitions, install_crds
from tests.kube.store.opening import OURS, make_namespace, opened
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.kube
API, ETCD = "kube-apiserver", "etcd"


@pytest.fixture(scope="module")
def victim(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of our own, with our kinds."""
    with running(tmp_path_factory.mktemp("victim"), version) as cluster:
        install_crds(cluster)
        make_namespace(cluster, "j10ce-system")
        yield cluster


@pytest.fixture
async def store(victim: Cluster) -> AsyncIterator[KubeStore]:
    store = opened(victim, patience_s=LONG_S)
    for obj in (await store.list(KIND)).items:
        await store.delete(KIND, obj.metadata.namespace, obj.metadata.name)
    yield store
    await store.close()


async def until(followed: Mirror, changes: AsyncIterator[Any], name: str) -> None:
    while not any(key.name == name for key in followed.held):
        await soon(anext(changes))


async def restart(cluster: Cluster, name: str) -> None:
    await asyncio.to_thread(cluster.restart, name)


@pytest.mark.one_version
@pytest.mark.parametrize("name", [API, ETCD])
async def test_what_is_held_stays_while_the_server_is_away_and_is_right_afterwards(
    victim: Cluster, store: KubeStore, name: str
) -> None:
    await store.put(reservation("stays", cpu="1"))
    await store.put(reservation("goes", cpu="1"))
    followed = Mirror(store, KIND)
    changes = followed.changes()
    await until(followed, changes, "stays")
    await until(followed, changes, "goes")
    victim.kill(name)
    impatient = opened(victim, patience_s=0.5)
    with pytest.raises(StoreError):
        await impatient.list(KIND)
    await impatient.close()
    assert {key.name for key in followed.held} == {"stays", "goes"}
    async with asyncio.TaskGroup() as group:
        group.create_task(restart(victim, name))
        group.create_task(store.put(reservation("made", cpu="1")))
        group.create_task(store.delete(KIND, "default", "goes"))
    await until(followed, changes, "made")
    while len(followed.held) > 2:
        await soon(anext(changes))
    assert sorted(followed.held.values(), key=name_of) == sorted((await store.list(KIND)).items, key=name_of)


def name_of(obj: Object) -> str:
    return obj.metadata.name


@pytest.mark.one_version
async def test_a_store_that_was_restored_is_noticed(victim: Cluster, store: KubeStore) -> None:
    await store.put(reservation("old", cpu="1"))
    data, saved = victim.folder / "etcd", victim.folder / "saved"
    await asyncio.to_thread(exchange, victim, lambda: shutil.copytree(data, saved))
    followed = Mirror(store, KIND)
    changes = followed.changes()
    for n in range(20):
        await store.put(reservation("new", cpu=f"{n + 1}"))
    await until(followed, changes, "new")
    await asyncio.to_thread(exchange, victim, lambda: (shutil.rmtree(data), saved.rename(data)))
    while any(key.name == "new" for key in followed.held):
        await soon(anext(changes))
    assert [key.name for key in followed.held] == ["old"]


def exchange(cluster: Cluster, work: Callable[[], object]) -> None:
    """While nothing runs."""
    cluster.kill(API)
    cluster.kill(ETCD)
    work()
    cluster.start(ETCD, cluster._commands[ETCD])
    cluster.restart(API)


@pytest.mark.one_version
async def test_a_server_that_hangs_is_given_up_and_found_again(victim: Cluster, store: KubeStore) -> None:
    made = await store.put(reservation("db", cpu="1"))
    hasty = opened(victim, patience_s=0.1)
    victim.pause(API)
    try:
        with pytest.raises(Unavailable, match="does not answer GET"):
            await hasty.get(KIND, "default", "db")
    finally:
        victim.resume(API)
    assert await store.get(KIND, "default", "db") == made
    await hasty.close()


@pytest.mark.one_version
async def test_a_leader_stops_before_another_may_lead(victim: Cluster, store: KubeStore) -> None:
    leader = Candidate(kube_elector(store.client, "a", time.time, ttl_s=3))  # noqa: TID251
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(leader.lead())
        await first(leader)
        victim.pause(API)
        try:
            async with asyncio.timeout(LONG_S):
                await leader.ended.wait()
        finally:
            victim.resume(API)
        await first(leader)
        assert leader.elector.leader
        leading.cancel()


@pytest.mark.one_version
async def test_a_claim_is_taken_over_once_it_was_not_renewed(victim: Cluster, store: KubeStore) -> None:
    """Its holder vanished without a word; its clock is an hour ahead."""
    gone = kube_elector(store.client, "gone", lambda: time.time() + 3600, ttl_s=2)  # noqa: TID251
    await gone._claims.claimed()
    heir = Candidate(kube_elector(store.client, "heir", time.time, ttl_s=2))  # noqa: TID251
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(heir.lead())
        await first(heir)
        leading.cancel()


@pytest.mark.one_version
async def test_a_renewal_that_was_on_its_way_does_not_keep_a_released_claim(victim: Cluster, store: KubeStore) -> None:
    claims = kube_elector(store.client, "a", time.time, ttl_s=3600)._claims  # noqa: TID251
    claim = await claims.claimed()
    await claims.renewed(claim, LONG_S)  # and nobody hears of it
    await claims.release(claim)
    heir = Candidate(kube_elector(store.client, "heir", time.time, ttl_s=3600))  # noqa: TID251
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(heir.lead())
        await first(heir)
        leading.cancel()


async def test_kinds_may_come_late(version: Version, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("late"), version) as cluster:
        store, hasty = opened(cluster), opened(cluster, patience_s=1)
        with pytest.raises(Unavailable, match="install its CRD"):
            await hasty.list(KIND)
        with pytest.raises(Unavailable, match="install its CRD"):
            await hasty.get(KIND, "default", "db")
        await hasty.close()
        followed = Mirror(store, KIND)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(soon(anext(followed.changes())))
            await asyncio.to_thread(install_crds, cluster, list(map(loosened, definitions())))
            assert not followed.held
            await store.put(reservation("db", cpu="1"))
        assert waiting.result().object.metadata.name == "db"
        await check_unreadable(cluster, store)
        await store.close()


async def check_unreadable(cluster: Cluster, store: KubeStore) -> None:
    """One that was stored by a later release, or before a rule was there, stops nobody from seeing the others."""
    followed = Mirror(store, KIND)
    changes = followed.changes()
    await until(followed, changes, "db")
    path = f"{OURS}/namespaces/default/minimalreservationpolicies"
    odd = {"apiVersion": "j10ce.io/v1alpha1", "kind": KIND, "metadata": {"name": "odd"}, "spec": {"minimum": 7}}
    cluster.call("POST", path, odd)
    await store.put(reservation("next", cpu="1"))
    await until(followed, changes, "next")
    assert [obj.metadata.name for obj in (await store.list(KIND)).items] == ["db", "next"]
    assert store.unreadable()[KIND] == 1
    merge = "application/merge-patch+json"
    cluster.call("PATCH", f"{path}/db", {"spec": {"minimum": {"cpu": "much"}}}, content=merge)
    assert (await soon(anext(changes))).type == "DELETED"
    assert store.unreadable()[KIND] == 2
    mended = await store.put(reservation("db", cpu="3"))
    back = await soon(anext(changes))
    assert (back.type, back.object) == ("ADDED", mended)
    cluster.call("DELETE", f"{path}/odd")
    await store.put(reservation("last", cpu="1"))
    await until(followed, changes, "last")
    assert store.unreadable()[KIND] == 0


def loosened(definition: Any) -> Any:
    """A CRD that takes anything."""
    loose = deepcopy(definition)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything
    loose["spec"]["versions"][0]["additionalPrinterColumns"] = []
    return loose


# -- the order of things


Fault = Callable[[Cluster, random.Random], Awaitable[None]]


def killing(name: str) -> Fault:
    async def kill(cluster: Cluster, chance: random.Random) -> None:
        cluster.kill(name)
        await asyncio.sleep(chance.uniform(0.1, 1.0))
        await restart(cluster, name)

    return kill


def pausing(name: str) -> Fault:
    async def pause(cluster: Cluster, chance: random.Random) -> None:
        cluster.pause(name)
        await asyncio.sleep(chance.uniform(0.5, 7.0))
        cluster.resume(name)

    return pause


FAULTS = [make(name) for make in (killing, pausing) for name in (API, ETCD)]


async def check_order(victim: Cluster, faults: Sequence[Fault], seed: int) -> None:
    stores = [opened(victim) for _ in range(3)]
    notes = await torture(stores, victim, faults, seed=seed)  # type: ignore[arg-type]
    for each in stores:
        await each.close()
    print(*(f"{notes.count(outcome)} {outcome}" for outcome in ("ok", "conflict", "unknown")), notes.failed, "failed")
    assert notes.count("ok") > 50
    for key in KEYS:
        assert is_linearizable(notes.histories[key]), key


@pytest.mark.one_version
@pytest.mark.slow
async def test_no_fault_breaks_the_order_of_things(victim: Cluster, store: KubeStore) -> None:
    await check_order(victim, FAULTS, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("round_", range(int(os.environ.get("J10CE_SOAK", "10"))))
async def test_no_sequence_of_faults_breaks_the_order_of_things(victim: Cluster, store: KubeStore, round_: int) -> None:
    await check_order(victim, random.Random(round_).choices(FAULTS, k=12), seed=round_)
