"""What every Store must do. A store's test class inherits this and gives a `store` fixture, opened and empty.

class TestMine(StoreConformance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from j10ce.errors import Compacted, Conflict, NotFound
from j10ce.model.kinds import Condition, MinimalReservationPolicy, Object, PolicyStatus, QoSProfile
from j10ce.model.stored import Event, Listing
from j10ce.store.mirror import Mirror
from j10ce.store.store import ABSENT, ANY, Store
from j10ce.testing.build import profile, reservation

KIND = "MinimalReservationPolicy"
LONG_S = 60.0  # a wait that ends by an event, never by this


async def soon(wait: Awaitable[Event]) -> Event:
    return await asyncio.wait_for(wait, LONG_S)


async def take(store: Store, kind: str, since: str, count: int) -> list[Event]:
    """The next changes of a kind, exactly so many."""
    watch = store.watch(kind, since)
    return [await soon(anext(watch)) for _ in range(count)]


def labelled(obj: Object, **labels: str) -> Object:
    return replace(obj, metadata=replace(obj.metadata, labels=labels))


def with_cpu(obj: Object, cpu: str) -> Object:
    assert isinstance(obj, MinimalReservationPolicy)
    return replace(obj, spec=reservation(cpu=cpu).spec)


def judged(obj: Object, message: str) -> Object:
    assert isinstance(obj, MinimalReservationPolicy | QoSProfile)
    turned = datetime(2026, 1, 1, tzinfo=UTC)
    condition = Condition(
        type="Admitted", status="True", reason="Granted", message=message, last_transition_time=turned
    )
    return replace(obj, status=replace(obj.status, conditions=(condition,)))


class StoreConformance:
    many = 10_000  # changes; fewer where each costs more

    # -- objects

    async def test_a_created_object_is_stamped_and_read_back(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"), expect=ABSENT)
        assert made.metadata.uid
        assert made.metadata.resource_version
        assert made.metadata.generation == 1
        assert await store.get(KIND, "default", "db") == made

    async def test_an_object_keeps_its_uid_and_age(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        changed = await store.put(reservation("db", cpu="2", created=0))
        assert changed.metadata.uid == made.metadata.uid
        assert changed.metadata.creation_timestamp == made.metadata.creation_timestamp

    async def test_an_absent_object_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.get(KIND, "default", "db")
        with pytest.raises(NotFound):
            await store.delete(KIND, "default", "db")
        with pytest.raises(NotFound):
            await store.put(reservation("db", cpu="1"), expect="1")

    async def test_names_are_separate_by_kind_and_namespace(self, store: Store) -> None:
        await store.put(reservation("db", namespace="a", cpu="1"), expect=ABSENT)
        await store.put(reservation("db", namespace="b", cpu="2"), expect=ABSENT)
        await store.put(profile("db"), expect=ABSENT)
        stored = await store.get(KIND, "b", "db")
        assert isinstance(stored, MinimalReservationPolicy)
        assert stored.spec == reservation(cpu="2").spec

    async def test_a_listing_is_ordered_and_may_be_of_one_namespace(self, store: Store) -> None:
        for namespace, name in [("b", "x"), ("a", "y"), ("a", "x")]:
            await store.put(reservation(name, namespace=namespace, cpu="1"))
        assert names(await store.list(KIND)) == ["a/x", "a/y", "b/x"]
        assert names(await store.list(KIND, "a")) == ["a/x", "a/y"]

    async def test_a_deleted_object_is_gone_and_its_successor_is_another(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        gone = await store.delete(KIND, "default", "db")
        assert gone.metadata.uid == made.metadata.uid
        with pytest.raises(NotFound):
            await store.get(KIND, "default", "db")
        again = await store.put(reservation("db", cpu="1"), expect=ABSENT)
        assert again.metadata.uid != made.metadata.uid
        assert again.metadata.generation == 1

    # -- concurrency

    async def test_a_second_create_conflicts(self, store: Store) -> None:
        await store.put(reservation("db", cpu="1"), expect=ABSENT)
        with pytest.raises(Conflict):
            await store.put(reservation("db", cpu="2"), expect=ABSENT)

    async def test_a_stale_write_conflicts_and_changes_nothing(self, store: Store) -> None:
        first = await store.put(reservation("db", cpu="1"))
        second = await store.put(with_cpu(first, "2"), expect=first.metadata.resource_version)
        with pytest.raises(Conflict):
            await store.put(with_cpu(first, "3"), expect=first.metadata.resource_version)
        with pytest.raises(Conflict):
            await store.delete(KIND, "default", "db", expect=first.metadata.resource_version)
        assert await store.get(KIND, "default", "db") == second

    async def test_of_many_writers_at_one_revision_one_wins(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        expect = made.metadata.resource_version
        writes = (store.put(with_cpu(made, f"{n}"), expect=expect) for n in range(2, 12))
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert len(won) == 1
        assert all(isinstance(outcome, Conflict) for outcome in outcomes if outcome not in won)
        assert await store.get(KIND, "default", "db") == won[0]

    async def test_many_unconditional_writers_all_succeed(self, store: Store) -> None:
        listing = await store.list(KIND)
        await asyncio.gather(*(store.put(reservation("db", cpu=f"{n}"), expect=ANY) for n in range(1, 21)))
        events = await take(store, KIND, listing.revision, 20)
        assert [event.type for event in events] == ["ADDED"] + ["MODIFIED"] * 19
        assert await store.get(KIND, "default", "db") == events[-1].object

    # -- parts

    async def test_generation_moves_with_spec_only(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        relabelled = await store.put(labelled(made, app="x"))
        assert relabelled.metadata.generation == 1
        reported = await store.put(judged(relabelled, "fits"), part="status")
        assert reported.metadata.generation == 1
        respecified = await store.put(with_cpu(reported, "2"))
        assert respecified.metadata.generation == 2

    async def test_a_part_leaves_the_other_as_it_is(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        reported = await store.put(judged(with_cpu(labelled(made, app="x"), "9"), "fits"), part="status")
        assert isinstance(reported, MinimalReservationPolicy)
        assert reported.spec == reservation(cpu="1").spec
        assert not reported.metadata.labels
        respecified = await store.put(with_cpu(made, "2"))
        assert isinstance(respecified, MinimalReservationPolicy)
        assert respecified.status == reported.status

    async def test_a_created_object_has_no_status_yet(self, store: Store) -> None:
        made = await store.put(judged(profile("mine"), "I say so"))
        assert isinstance(made, QoSProfile)
        assert made.status == PolicyStatus()

    async def test_an_absent_object_has_no_status(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.put(judged(reservation("db", cpu="1"), "fits"), part="status")

    async def test_a_write_that_changes_nothing_makes_no_revision(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        assert await store.put(reservation("db", cpu="1")) == made
        await store.put(reservation("other", cpu="1"))
        (event,) = await take(store, KIND, made.metadata.resource_version, 1)
        assert event.object.metadata.name == "other"

    # -- watches

    async def test_a_watch_tells_what_happened_after_its_revision(self, store: Store) -> None:
        made = await store.put(reservation("db", cpu="1"))
        await store.put(with_cpu(made, "2"))
        await store.put(profile("another-kind"))
        await store.delete(KIND, "default", "db")
        events = await take(store, KIND, made.metadata.resource_version, 2)
        assert [event.type for event in events] == ["MODIFIED", "DELETED"]
        assert with_cpu(events[1].object, "2") == events[1].object

    async def test_a_watch_waits_for_more(self, store: Store) -> None:
        listing = await store.list(KIND)
        watch = store.watch(KIND, listing.revision)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(soon(anext(watch)))
            await asyncio.sleep(0)
            made = await store.put(reservation("db", cpu="1"))
        assert waiting.result().object == made

    async def test_a_wait_may_be_cancelled_and_repeated(self, store: Store) -> None:
        watch = store.watch(KIND, (await store.list(KIND)).revision)
        for n in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(watch), 0.001)
            made = await store.put(reservation(f"db-{n}", cpu="1"))
            assert (await soon(anext(watch))).object == made

    async def test_each_event_continues_the_watch(self, store: Store) -> None:
        since = (await store.list(KIND)).revision
        for n in range(10):
            await store.put(reservation(f"db-{n}", cpu="1"))
        events = await take(store, KIND, since, 10)
        for n, event in enumerate(events[:-1]):
            (follows,) = await take(store, KIND, event.revision, 1)
            assert follows.object == events[n + 1].object

    async def test_many_changes_arrive_in_order_none_lost_none_twice(self, store: Store) -> None:
        since, count = (await store.list(KIND)).revision, self.many

        async def write(offset: int) -> None:
            for n in range(offset, count, 50):
                await store.put(reservation(f"p-{n % 500}", cpu=f"{n}m"))

        async with asyncio.TaskGroup() as group:
            watching = group.create_task(take(store, KIND, since, count))
            for offset in range(50):
                group.create_task(write(offset))
        seen = [event.object.metadata.resource_version for event in watching.result()]
        assert len(set(seen)) == count
        assert seen == [event.object.metadata.resource_version for event in await take(store, KIND, since, count)]
        held = {event.object.metadata.name: event.object for event in watching.result()}
        assert (
            tuple(held[obj.metadata.name] for obj in (await store.list(KIND)).items) == (await store.list(KIND)).items
        )

    async def test_a_revision_that_the_store_never_gave_is_compacted(self, store: Store) -> None:
        for since in ("", "0", "rubbish", str(10**18)):
            with pytest.raises(Compacted):
                await soon(anext(store.watch(KIND, since)))

    # -- the informer

    async def test_a_mirror_follows(self, store: Store) -> None:
        await store.put(reservation("one", cpu="1"))
        followed = Mirror(store, KIND)
        changes = followed.changes()
        assert (await soon(anext(changes))).type == "ADDED"
        await store.put(reservation("two", cpu="1"))
        await store.delete(KIND, "default", "one")
        assert [(await soon(anext(changes))).type for _ in range(2)] == ["ADDED", "DELETED"]
        assert followed.synced.is_set()
        assert tuple(followed.held.values()) == (await store.list(KIND)).items


def names(listing: Listing) -> list[str]:
    return [f"{obj.metadata.namespace}/{obj.metadata.name}" for obj in listing.items]
