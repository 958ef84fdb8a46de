"""Clients that write down all they do and hear, and someone who breaks their etcd meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from j10ce.errors import Conflict, NotFound, Unavailable, Unsure
from j10ce.model.kinds import Object
from j10ce.store.store import ABSENT, Store
from j10ce.testing.build import reservation
from j10ce.testing.conformance_store import KIND, labelled
from tests.etcd.cluster import Cluster
from tests.etcd.history import Kind, Operation, Value

KEYS = ("a", "b", "c", "d")
Fault = Callable[[Cluster, random.Random], Awaitable[None]]


class Notes:
    """The history of each key. Calls and returns are counted by one clock, so their order is known exactly."""

    def __init__(self) -> None:
        self.clock = itertools.count()
        self.values = itertools.count(1)
        self.histories: dict[str, list[Operation]] = defaultdict(list)
        self.failed = 0  # refused for sure, and therefore in no history

    def count(self, outcome: str) -> int:
        return sum(op.outcome == outcome for history in self.histories.values() for op in history)


class Client:
    """One operation at a time, chosen by chance; a cas is based on the last object that it saw."""

    def __init__(self, store: Store, notes: Notes, chance: random.Random) -> None:
        self._store, self._notes, self._chance = store, notes, chance
        self._known: dict[str, Object] = {}

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            kinds: list[Kind] = ["get", "put", "cas", "cas", "create", "delete"]
            await self.do(self._chance.choice(kinds), self._chance.choice(KEYS))
            await asyncio.sleep(self._chance.uniform(0, 0.04))

    async def do(self, kind: Kind, key: str) -> None:
        known = self._known.get(key)
        if kind == "cas" and known is None:
            kind = "get"
        op = Operation(kind, next(self._notes.clock))
        if kind in ("put", "cas", "create"):
            op = op._replace(value=next(self._notes.values))
        if kind == "cas":
            op = op._replace(expected=value_of(known))
        try:
            outcome = await self._call(op, key, known)
            op = op._replace(seen=value_of(outcome))
            self._learn(key, None if kind == "delete" else outcome)
        except (Conflict, NotFound):
            op = op._replace(outcome="ok" if kind == "get" else "conflict")
            self._learn(key, None)
        except Unsure:
            self._learn(key, None)
            self._notes.histories[key].append(op._replace(outcome="unknown"))
            return
        except Unavailable:
            self._notes.failed += 1
            return
        self._notes.histories[key].append(op._replace(returned=next(self._notes.clock)))

    async def _call(self, op: Operation, key: str, known: Object | None) -> Object:
        wish = labelled(reservation(key, cpu="1"), value=str(op.value))
        match op.kind:
            case "put":
                return await self._store.put(wish)
            case "create":
                return await self._store.put(wish, expect=ABSENT)
            case "cas" if known:
                return await self._store.put(wish, expect=known.metadata.resource_version)
            case "delete":
                return await self._store.delete(KIND, "default", key)
            case _:
                return await self._store.get(KIND, "default", key)

    def _learn(self, key: str, obj: Object | None) -> None:
        self._known.pop(key, None)
        if obj:
            self._known[key] = obj


def value_of(obj: Object | None) -> Value:
    return int(obj.metadata.labels["value"]) if obj else None


async def kill_leader(cluster: Cluster, chance: random.Random) -> None:
    await kill(cluster, await asyncio.to_thread(cluster.leader), chance)


async def kill_any(cluster: Cluster, chance: random.Random) -> None:
    await kill(cluster, chance.randrange(len(cluster.members)), chance)


async def kill(cluster: Cluster, n: int, chance: random.Random) -> None:
    cluster.kill(n)
    await asyncio.sleep(chance.uniform(0.1, 1.5))
    await asyncio.to_thread(cluster.restart, n)


async def kill_all(cluster: Cluster, chance: random.Random) -> None:
    everyone = range(len(cluster.members))
    for n in everyone:
        cluster.kill(n)
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    await asyncio.to_thread(cluster.start, *everyone)


async def pause_leader(cluster: Cluster, chance: random.Random) -> None:
    await pause(cluster, [await asyncio.to_thread(cluster.leader)], chance)


async def pause_two(cluster: Cluster, chance: random.Random) -> None:
    await pause(cluster, chance.sample(range(len(cluster.members)), 2), chance)


async def pause(cluster: Cluster, numbers: Sequence[int], chance: random.Random) -> None:
    for n in numbers:
        cluster.pause(n)
    await asyncio.sleep(chance.uniform(0.5, 4.0))
    for n in numbers:
        cluster.resume(n)
        await asyncio.to_thread(cluster.wait, n)


FAULTS: tuple[Fault, ...] = (kill_leader, pause_leader, kill_any, pause_two, kill_all)


async def torture(
    stores: Sequence[Store], cluster: Cluster, faults: Sequence[Fault], *, seed: int, clients: int = 3
) -> Notes:
    """The notes of so many clients per store while the faults happen one after the other, and of a look afterwards."""
    chance, notes, over = random.Random(seed), Notes(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for store in stores:
            for _ in range(clients):
                group.create_task(Client(store, notes, random.Random(chance.random())).run(over))
        for fault in faults:
            await fault(cluster, chance)
            await asyncio.sleep(chance.uniform(0.2, 1.0))
        over.set()
    for store in stores:
        for key in KEYS:
            await Client(store, notes, chance).do("get", key)
    return notes
