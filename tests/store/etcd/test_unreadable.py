"""What a release cannot read is kept for the one that can: a leader runs meanwhile, on SQLite and on etcd."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from j10ce.errors import Conflict, Denied, NotFound, StoreError
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.identity import Act, Caller, Role, acting
from j10ce.manager.policies.history import ensure_built_in, keep_history, record
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.manager.telemetry.trace import Silent
from j10ce.model.kinds import Hold, MinimalReservationPolicy, Owner, PolicyRevision
from j10ce.model.stored import Key, Unreadable
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.validate import validate
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.etcd.wire import PUT, RANGE, Keyspace
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.store import ABSENT, Forgiving, Store
from j10ce.testing.build import WALL, hold, minimum, reservation
from tests.manager.keepers.world import Agent, Clock, Manager, condition, edit, numbers, placed, running, stored

KIND = "MinimalReservationPolicy"
DB = (KIND, "default", "db")


class Home(Protocol):
    """Where objects last longer than a process, as whoever stands beside it sees it."""

    def opened(self) -> Store: ...

    async def read(self) -> bytes:
        """The bytes of `db`."""
        ...

    async def write(self, data: bytes) -> None: ...


class File:
    def __init__(self, path: Path) -> None:
        self._path = path

    def opened(self) -> Store:
        return SqliteStore(self._path, lambda: WALL)

    async def read(self) -> bytes:
        sql = sqlite3.connect(self._path)
        (data,) = sql.execute("SELECT data FROM objects WHERE kind = ? AND namespace = ? AND name = ?", DB).fetchone()
        sql.close()
        return bytes(data)

    async def write(self, data: bytes) -> None:
        sql = sqlite3.connect(self._path)
        sql.execute("UPDATE objects SET data = ? WHERE kind = ? AND namespace = ? AND name = ?", (data, *DB))
        sql.commit()
        sql.close()


class Etcd:
    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self._path = Keyspace(self._address.prefix).objects + "/".join(DB).encode()

    def opened(self) -> Store:
        return EtcdStore(self._address, lambda: WALL, patience_s=60)

    async def read(self) -> bytes:
        gateway = Gateway(self._address)
        (obj,) = (await gateway.ask(RANGE, pb.RangeRequest(key=self._path))).kvs
        await gateway.close()
        return obj.value

    async def write(self, data: bytes) -> None:
        gateway = Gateway(self._address)
        await gateway.ask(PUT, pb.PutRequest(key=self._path, value=data))
        await gateway.close()


@pytest.fixture(params=["sqlite", "etcd"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "sqlite":
        return File(tmp_path / "objects.db")
    return Etcd(request.getfixturevalue("url"))


def of_the_next_release(data: bytes) -> bytes:
    spoilt = data.replace(b'"units":200', b'"units":{"of":"the next release"}')
    assert spoilt != data
    return spoilt


@asynccontextmanager
async def led(home: Home, clock: Clock) -> AsyncIterator[tuple[Store, Manager]]:
    store = home.opened()
    async with running(manager := Manager(store, clock)):
        yield store, manager
    await store.close()


async def rounds(manager: Manager, agent: Agent) -> None:
    for _ in range(4):
        await agent.report(manager)
        await manager.round()


async def refused_edit(store: Store, manager: Manager, agent: Agent) -> None:
    """`db` holds two units by its first generation; its second is refused; a hold of a user's ends with it."""
    await agent.report(manager)
    made = await store.put(reservation("db", cpu="1", units=2))
    await rounds(manager, agent)
    owner = Owner(api_version=made.api_version, kind=KIND, name="db", uid=made.metadata.uid)
    theirs = hold("workload/default/db", "cpu.max")
    await store.put(replace(theirs, metadata=replace(theirs.metadata, namespace="default", owner_references=(owner,))))
    await edit(store, "db", units=200, minimum=minimum(cpu="64"))
    await rounds(manager, agent)
    assert condition(manager.policy("db"), "Admitted").status == "False"
    assert placed(manager.policy("db")) == {"n0": 2}


async def test_going_back_a_release_and_forth_again_costs_no_promise_and_no_history(home: Home) -> None:
    clock, agent = Clock(), Agent("n0")
    async with led(home, clock) as (store, manager):
        await refused_edit(store, manager, agent)
    before = await home.read()
    await home.write(of_the_next_release(before))
    async with led(home, clock) as (store, manager):
        await rounds(manager, agent)
        assert not (await store.list(KIND)).items, "this release cannot read it"
        assert numbers(await stored(store, PolicyRevision)) == [1, 2]
        assert len(await stored(store, Hold)) == 1
    await home.write(before)
    async with led(home, clock) as (store, manager):
        await rounds(manager, agent)
        assert manager.policy("db").status.admitted_generation == 1
        assert placed(manager.policy("db")) == {"n0": 2}
        assert manager.document("n0").units == {"MinimalReservationPolicy/default/db": 2}
        await store.delete(*DB)
        await rounds(manager, agent)
        assert not await stored(store, PolicyRevision)
        assert not await stored(store, Hold)


async def test_what_turns_unreadable_under_a_leader_keeps_its_history(url: str) -> None:
    """The view hears that the policy has ended, and so does whoever keeps the history."""
    home, agent = Etcd(url), Agent("n0")
    async with led(home, Clock()) as (store, manager), asyncio.TaskGroup() as group:
        await refused_edit(store, manager, agent)
        keeping = group.create_task(keep_history(store, manager.view))
        before = await home.read()
        known = manager.policy("db")
        await home.write(of_the_next_release(before))
        while manager.view.all(MinimalReservationPolicy):
            await manager.view.objects.moved(manager.view.objects.epoch)
        await store.put(reservation("other", cpu="1"))
        while {r.metadata.name.split("-")[0] for r in manager.view.all(PolicyRevision)} != {"db", "other"}:
            await manager.view.objects.moved(manager.view.objects.epoch)
        await record(store, [known])
        await rounds(manager, agent)
        assert [r.revision for r in await stored(store, PolicyRevision) if r.metadata.name.startswith("db-")] == [1, 2]
        await home.write(before)
        while not any(p.metadata.name == "db" for p in manager.view.all(MinimalReservationPolicy)):
            await manager.view.objects.moved(manager.view.objects.epoch)
        await rounds(manager, agent)
        assert manager.policy("db").status.admitted_generation == 1
        keeping.cancel()


async def test_what_cannot_be_read_is_there_to_whoever_asks_for_it(home: Home) -> None:
    store = home.opened()
    await store.put(reservation("db", units=200))
    await store.close()
    await home.write(of_the_next_release(await home.read()))
    observed = ObservedStore(store := home.opened(), Metrics(), Silent())
    with pytest.raises(Unreadable):
        await observed.get(*DB)
    assert not observed.trouble, "the store answers"
    for attempt in (store.delete(*DB), store.put(reservation("db"))):
        with pytest.raises(StoreError, match="cannot be read"):
            await attempt
    await store.close()


async def test_an_administrator_deletes_what_no_release_will_read_again(home: Home) -> None:
    clock, agent = Clock(), Agent("n0")
    async with led(home, clock) as (store, manager):
        await refused_edit(store, manager, agent)
    await home.write(of_the_next_release(await home.read()))
    async with led(home, clock) as (store, manager):
        verbs = Verbs(ObservedStore(store, Metrics(), Silent()), validate, lambda: WALL, {})
        with acting(Act(caller=Caller("eve", Role.EDITOR))), pytest.raises(Denied, match="admin may"):
            await verbs.discard(Key(*DB))
        with acting(Act(caller=Caller("adm", Role.ADMIN))) as act:
            act.verb = "delete"
            await verbs.discard(Key(*DB))
            with pytest.raises(NotFound):
                await verbs.discard(Key(*DB))
        with pytest.raises(NotFound):
            await store.get(*DB)
        assert isinstance(store, Forgiving)
        assert not store.unreadable()
        await rounds(manager, agent)
        assert not await stored(store, PolicyRevision)
        assert not await stored(store, Hold)
        assert await store.put(reservation("db", cpu="1"), expect=ABSENT)
        with acting(act), pytest.raises(Conflict, match="can be read"):
            await verbs.discard(Key(*DB))
    store = home.opened()
    assert [obj.metadata.name for obj in (await store.list(KIND)).items] == ["db"]
    await store.close()


async def test_a_built_in_profile_that_cannot_be_read_does_not_keep_the_others_from_being_made(tmp_path: Path) -> None:
    first, *others = builtin()
    store = SqliteStore(tmp_path / "objects.db", lambda: WALL)
    await ensure_built_in(store, [first])
    await store.close()
    sql = sqlite3.connect(tmp_path / "objects.db")
    sql.execute("UPDATE objects SET data = CAST(replace(data, '\"spec\":', '\"spex\":') AS BLOB)")
    sql.commit()
    sql.close()
    store = SqliteStore(tmp_path / "objects.db", lambda: WALL)
    await ensure_built_in(store, [first, *others])
    assert {obj.metadata.name for obj in (await store.list("QoSProfile")).items} == {p.metadata.name for p in others}
    await store.close()
