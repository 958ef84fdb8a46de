"""The table that stands before etcd: one watch for all, loaded again whenever its history has a hole."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from j10ce.errors import Closed, Compacted, StoreError
from j10ce.model.kinds import Object
from j10ce.store.etcd import feed as etcd_feed
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.etcd.upkeep import Fill, compact, compact_to
from j10ce.store.etcd.wire import COMPACT, DELETE, PLACES, PUT, RANGE
from j10ce.store.mirror import Mirror
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, names, soon, take
from tests.etcd.cluster import Cluster, running
from tests.etcd.proxy import Proxy, always, proxied


def opened(url: str, kept: int = 1000) -> EtcdStore:
    return EtcdStore(read_address(url), lambda: WALL, kept=kept, patience_s=60)


@pytest.fixture
async def proxy(etcd: Cluster) -> AsyncIterator[Proxy]:
    async with proxied(etcd.endpoints[0]) as proxy:
        yield proxy


@pytest.fixture
async def store(url: str) -> AsyncIterator[EtcdStore]:
    store = opened(url)
    yield store
    await store.close()


@pytest.fixture
async def behind(proxy: Proxy, url: str) -> AsyncIterator[EtcdStore]:
    """The same objects, seen through the proxy."""
    store = opened(f"etcd://{proxy.address}/{url.rpartition('/')[2]}")
    yield store
    await store.close()


def watchers(etcd: Cluster) -> int:
    with urllib.request.urlopen(f"http://{etcd.endpoints[0]}/metrics") as answer:
        match = re.search(r"^etcd_debugging_mvcc_watcher_total (\S+)", answer.read().decode(), re.MULTILINE)
    assert match
    return int(float(match[1]))


async def test_a_thousand_watchers_are_one_watcher_of_etcd(store: EtcdStore, etcd: Cluster) -> None:
    since = (await store.list(KIND)).revision
    before = await asyncio.to_thread(watchers, etcd)
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(soon(anext(store.watch(KIND, since)))) for _ in range(1000)]
        await asyncio.sleep(0)
        made = await store.put(reservation("db"))
    assert {wait.result().object.metadata.uid for wait in waits} == {made.metadata.uid}
    assert await asyncio.to_thread(watchers, etcd) == before


async def test_many_readers_share_one_question_to_etcd(
    behind: EtcdStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_feed, "CHECK_S", 3600.0)  # or the store asks by itself, too, and the longer the more often
    monkeypatch.setattr(etcd_feed, "STALL_S", 3600.0)
    await behind.put(reservation("db"))
    asked: list[str] = []

    def judge(path: str, body: object) -> str:
        asked.append(path)
        return "pass"

    proxy.judge = judge  # type: ignore[assignment]
    await asyncio.gather(*(behind.get(KIND, "default", "db") for _ in range(1000)))
    assert 1 <= asked.count(RANGE.path) <= 3, "one of them may be before the compaction that a store begins with"


async def test_a_read_shows_what_another_process_wrote_before(store: EtcdStore, url: str) -> None:
    other = opened(url)
    for n in range(20):
        made = await other.put(reservation("db", cpu=f"{n + 1}"))
        assert await store.get(KIND, "default", "db") == made
    await other.close()


async def test_a_watch_goes_on_with_a_process_that_started_later(store: EtcdStore, url: str) -> None:
    since = (await store.list(KIND)).revision
    made = [await store.put(reservation(f"p-{n}")) for n in range(10)]
    later = opened(url)
    assert [event.object for event in await take(later, KIND, since, 10)] == made
    await later.close()


async def test_what_a_process_lists_first_is_of_the_present(store: EtcdStore, url: str) -> None:
    """Though it looks back when it starts: who watches from there gets on with any other process."""
    made = [await store.put(reservation(f"p-{n}")) for n in range(5)]
    later = opened(url)
    assert int((await later.list(KIND)).revision) >= int(made[-1].metadata.resource_version)
    await later.close()


async def test_a_watch_goes_on_with_a_process_that_started_after_a_compaction(store: EtcdStore, url: str) -> None:
    """From whatever etcd has kept."""
    before = await store.put(reservation("before"))
    since = (await store.list(KIND)).revision
    await store._gateway.ask(COMPACT, pb.CompactionRequest(revision=main(before)))
    made = [await store.put(reservation(f"p-{n}")) for n in range(5)]
    later = opened(url)
    assert [event.object for event in await take(later, KIND, since, 5)] == made
    await later.close()


async def test_old_changes_are_let_go(url: str) -> None:
    store = opened(url, kept=10)
    watch = store.watch(KIND, (await store.list(KIND)).revision)
    for n in range(30):
        await store.put(reservation(f"p-{n}"))
    await store.list(KIND)
    with pytest.raises(Compacted):
        await soon(anext(watch))
    await store.close()


async def test_a_hole_in_etcds_history_is_reported_and_filled(
    store: EtcdStore, behind: EtcdStore, proxy: Proxy
) -> None:
    await store.put(reservation("goes"))
    await store.put(reservation("stays"))
    changes = (followed := Mirror(behind, KIND)).changes()
    assert {(await soon(anext(changes))).object.metadata.name for _ in range(2)} == {"goes", "stays"}
    watch = behind.watch(KIND, (await behind.list(KIND)).revision)
    missing = asyncio.ensure_future(anext(watch))  # noqa: TID251
    await asyncio.sleep(0)
    proxy.judge = always("lose request")
    proxy.cut()
    await store.delete(KIND, "default", "goes")
    await store.put(reservation("comes"))
    present = await store._gateway.ask(RANGE, pb.RangeRequest(key=b"x"))
    await store._gateway.ask(COMPACT, pb.CompactionRequest(revision=present.header.revision))
    proxy.judge = always("pass")
    with pytest.raises(Compacted):
        await soon(missing)
    events = [await soon(anext(changes)) for _ in range(2)]
    assert [(event.type, event.object.metadata.name) for event in events] == [("DELETED", "goes"), ("ADDED", "comes")]
    assert sorted(followed.held) == [(KIND, "default", "comes"), (KIND, "default", "stays")]


async def test_managers_compact_what_is_old_and_keep_what_is_recent(store: EtcdStore) -> None:
    gateway, layout = store._gateway, store._layout
    first = await store.put(reservation("db", cpu="1"))
    old = pb.RangeRequest(key=layout.objects, range_end=layout.end, revision=main(first))

    async def until_compacted() -> None:
        while await gateway.ask(RANGE, old):
            await store.put(reservation("other"))

    async with asyncio.TaskGroup() as group:
        rounds = [group.create_task(compact(gateway, layout, every_s=0.05)) for _ in range(3)]
        with pytest.raises(Compacted):
            await until_compacted()
        for task in rounds:
            task.cancel()
    made = await store.put(reservation("db", cpu="2"))
    recent = pb.RangeRequest(key=layout.objects, range_end=layout.end, revision=main(made))
    assert len((await gateway.ask(RANGE, recent)).kvs) == 2


async def filled(gateway: Gateway, key: bytes) -> None:
    for n in range(1000):
        await gateway.ask(PUT, pb.PutRequest(key=key, value=bytes(100_000) + str(n).encode()))


async def test_an_etcd_that_is_full_can_still_be_compacted(tmp_path: Path) -> None:
    """Nothing is written for it, so it works when nothing can be written."""
    with running(tmp_path, 1, flags=["--quota-backend-bytes=8388608"]) as cluster:
        store = opened(cluster.url)
        gateway, layout = store._gateway, store._layout
        fill = Fill(gateway, layout, 8 << 20)
        first = await store.put(reservation("db"))
        with pytest.raises(StoreError, match="database is full"):
            await filled(gateway, layout.objects + b"x")
        await fill.look()
        assert fill.share > 0.9
        present = await compact_to(gateway, layout, 0)
        assert await compact_to(gateway, layout, present) == present
        assert await compact_to(gateway, layout, present - 1) == present, "who comes second has nothing to do"
        old = pb.RangeRequest(key=layout.objects, range_end=layout.end, revision=main(first))
        with pytest.raises(Compacted):
            await gateway.ask(RANGE, old)
        await store.close()


def main(obj: Object) -> int:
    """etcd's own revision of an object."""
    return int(obj.metadata.resource_version) // PLACES


async def test_what_nobody_can_read_costs_nobody_else_anything(store: EtcdStore, url: str) -> None:
    gateway, layout = store._gateway, store._layout
    await store.put(reservation("db"))
    rubbish = layout.objects + b"Hold/default/rubbish"
    await gateway.ask(PUT, pb.PutRequest(key=rubbish, value=b'{"kind": "Hold", "colour": "red"}'))
    later = opened(url)
    for reader in (store, later):
        assert names(await reader.list(KIND)) == ["default/db"]
        assert not (await reader.list("Hold")).items
    assert later.unreadable() == {"Hold": 1}
    with pytest.raises(StoreError, match="cannot be read by this release"):
        await later.snapshot()
    await gateway.ask(DELETE, pb.DeleteRangeRequest(key=rubbish))
    await later.put(reservation("other"))
    assert names(await later.list(KIND)) == ["default/db", "default/other"]
    assert later.unreadable() == {}
    assert len((await later.snapshot()).items) == 2
    await later.close()


async def test_an_object_that_turns_unreadable_is_gone_and_its_repair_brings_it_back(store: EtcdStore) -> None:
    gateway, layout = store._gateway, store._layout
    await store.put(reservation("db"))
    listing = await store.list(KIND)
    path = layout.objects + f"{KIND}/default/db".encode()
    (held,) = (await gateway.ask(RANGE, pb.RangeRequest(key=path))).kvs
    watch = store.watch(KIND, listing.revision)
    await gateway.ask(PUT, pb.PutRequest(key=path, value=held.value.replace(b'"spec"', b'"spec!"')))
    await gateway.ask(PUT, pb.PutRequest(key=path, value=held.value))
    types = [(await soon(anext(watch))).type for _ in range(2)]
    assert types == ["DELETED", "ADDED"]
    assert (await store.list(KIND)).items[0].spec == listing.items[0].spec


async def test_a_field_of_a_later_release_is_left_out(store: EtcdStore, url: str) -> None:
    gateway, layout = store._gateway, store._layout
    made = await store.put(reservation("db"))
    path = layout.objects + f"{KIND}/default/db".encode()
    (held,) = (await gateway.ask(RANGE, pb.RangeRequest(key=path))).kvs
    newer = held.value.replace(b'"spec":{', b'"spec":{"colour":"red",')
    await gateway.ask(PUT, pb.PutRequest(key=path, value=newer))
    later = opened(url)
    stored = await later.get(KIND, "default", "db")
    assert stored.spec == made.spec
    assert later.unreadable() == {}
    await later.close()


async def test_what_is_changed_with_etcdctl_is_seen_however_many_read(store: EtcdStore, url: str) -> None:
    """Such a change moves no mark, so a read in between takes the table for complete."""
    gateway, layout = store._gateway, store._layout
    for n in range(5):
        await store.put(reservation(f"p-{n}"))
    for n in range(5):
        await gateway.ask(DELETE, pb.DeleteRangeRequest(key=layout.objects + f"{KIND}/default/p-{n}".encode()))
        await asyncio.gather(*(store.list(KIND) for _ in range(20)))
    async with asyncio.timeout(30):
        while (await store.list(KIND)).items:
            pass


async def test_a_read_between_a_foreign_change_and_its_event_hides_nothing(behind: EtcdStore, proxy: Proxy) -> None:
    gateway, layout = behind._gateway, behind._layout
    await behind.put(reservation("db"))
    assert (await behind.list(KIND)).items
    feed = behind._feed
    held = feed._take
    late: list[pb.WatchResponse] = []
    feed._take = late.append  # type: ignore[method-assign]
    await gateway.ask(DELETE, pb.DeleteRangeRequest(key=layout.objects + f"{KIND}/default/db".encode()))
    assert (await behind.list(KIND)).items, "the event has not come yet"
    feed._take = held  # type: ignore[method-assign]
    proxy.cut()
    async with asyncio.timeout(30):
        while (await behind.list(KIND)).items:
            pass


async def test_a_closed_store_says_so(url: str) -> None:
    store = opened(url)
    watch = store.watch(KIND, (await store.list(KIND)).revision)
    waiting = asyncio.ensure_future(anext(watch))  # noqa: TID251
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StopAsyncIteration):
        await soon(waiting)
    with pytest.raises(Closed):
        await store.get(KIND, "default", "db")
    with pytest.raises(Closed):
        await store.put(reservation("db"))
