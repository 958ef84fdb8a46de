"""The fleet's store: what three clients reach with raw puts on one etcd, and what ours makes of it up to REST.

All in one run on one real etcd, whose every acknowledged write is on disk, and on one machine: etcd, the manager and
this process, which is the client, share its CPUs. Rounds are short and take turns, so that a machine that others slow
down slows all alike; a share is the median of those within each round. CPU is per call, 32 in flight. Policies come
last: the leader goes on judging them after they were created, which is no part of what else is measured.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import aetcd
import aiohttp
import httpx2
import uvloop

from benchmarks.facts import cpu_s, machine_facts
from benchmarks.rest import COLLECTION, Client, Served, manager, policy
from j10ce.manager.changes.ownership import FieldWriter, updated
from j10ce.model.kinds import Hold, MinimalReservationPolicy
from j10ce.model.schema import encode, parse
from j10ce.store.revise import revise
from j10ce.store.schemes import open_store
from j10ce.store.store import ABSENT
from tests.etcd.cluster import running

ROUNDS, CALLS, SINGLE, IN_FLIGHT = 8, 3000, 100, 32
HOLDS = "/apis/j10ce.io/v1alpha1/namespaces/bench/holds"
POLICIES = "REST: creates of policies, each judged and kept in history"
SHARE, GETS = 0.60, 5000.0  # goals
Call = Callable[[int], Awaitable[object]]  # one call; the number tells parallel callers apart
Opened = AbstractAsyncContextManager[Call]
PROCESSES = ("etcd", "manager", "client")


class Round(NamedTuple):
    rate: float  # calls per second
    cpu_us: tuple[float, ...]  # per call, of PROCESSES


Rounds = dict[str, dict[int, list[Round]]]  # by name and number in flight
NUMBERS = count()


def main() -> int:
    machine_facts()
    where = Path(os.environ.get("J10CE_BENCH_DIR", Path.cwd()))
    with (
        tempfile.TemporaryDirectory(prefix=".bench-etcd-", dir=where) as folder,
        running(Path(folder, "etcd"), count=1) as cluster,
        manager(Path(folder), f"{cluster.url}/rest") as served,
    ):
        measured = uvloop.run(measure(cluster.endpoints[0], cluster.pid(0), served))
    return judge(measured)


async def measure(endpoint: str, etcd: int, served: Served) -> Rounds:
    first = await Client(served.port, served.token).open()
    await first.call("POST", COLLECTION, policy("known"))
    first.close()
    pids = (etcd, served.pid, os.getpid())
    seen: Rounds = {}
    others = [name for name in arms(endpoint, served.port, served.token) if name != POLICIES]
    for name in others * ROUNDS + [POLICIES] * ROUNDS:
        async with arms(endpoint, served.port, served.token)[name] as call:
            for parallel, calls in ((IN_FLIGHT, CALLS), (1, SINGLE)):
                seen.setdefault(name, {}).setdefault(parallel, []).append(await timed(call, calls, parallel, pids))
    return seen


def arms(endpoint: str, port: int, token: str) -> dict[str, Opened]:
    return {
        "raw puts, aiohttp on the JSON gateway": raw_aiohttp(endpoint),
        "raw puts, aetcd (gRPC)": raw_aetcd(endpoint),
        "raw puts, httpx2 on the JSON gateway": raw_httpx2(endpoint),
        "our store: creates": our_store(endpoint),
        "REST: creates of holds": rest(port, token, create_hold),
        POLICIES: rest(port, token, create_policy),
        "REST: gets": rest(port, token, get_policy),
    }


async def timed(call: Call, calls: int, parallel: int, pids: tuple[int, ...]) -> Round:
    before = [*map(cpu_s, pids)]
    speed = await rate(call, calls, parallel)
    return Round(speed, tuple((cpu_s(pid) - was) / calls * 1e6 for pid, was in zip(pids, before, strict=True)))


async def rate(call: Call, calls: int, parallel: int) -> float:
    numbers = iter(range(calls))

    async def work(caller: int) -> None:
        for _ in numbers:
            await call(caller)

    began = time.perf_counter()
    await asyncio.gather(*map(work, range(parallel)))
    return calls / (time.perf_counter() - began)


def judge(seen: Rounds) -> int:
    medians = {
        name: {n: statistics.median(r.rate for r in rounds) for n, rounds in row.items()} for name, row in seen.items()
    }
    shares = {name: {n: share_of_raw(seen, name, n) for n in row} for name, row in medians.items()}
    share = "of fastest raw"
    print(f"\n{'per second':<62}{'32 in flight':>14}{share:>16}{'1 in flight':>13}{share:>16}   us of CPU: {PROCESSES}")
    for name, row in medians.items():
        rates = "".join(f"{row[n]:>14.0f}{shares[name][n]:>15.0%}" for n in (IN_FLIGHT, 1))
        cpu = zip(*(r.cpu_us for r in seen[name][IN_FLIGHT]), strict=True)
        print(f"{name:<62}{rates}   " + " ".join(f"{statistics.median(rounds):>8.0f}" for rounds in cpu))
    reached = shares["REST: creates of holds"][IN_FLIGHT]
    gets = medians["REST: gets"][IN_FLIGHT]
    print(f"REST on etcd: {reached:.0%} of the fastest raw puts   target {SHARE:.0%}")
    print(f"gets from cache: {gets:.0f}/s   target {GETS:.0f}")
    return int(reached < SHARE or gets < GETS)


def share_of_raw(seen: Rounds, name: str, parallel: int) -> float:
    """Of what the fastest client reached with raw puts in the same round; the median over the rounds."""
    raw = [rows[parallel] for other, rows in seen.items() if other.startswith("raw")]
    fastest = [max(r.rate for r in together) for together in zip(*raw, strict=True)]
    return statistics.median(r.rate / best for r, best in zip(seen[name][parallel], fastest, strict=True))


# -- the arms: each a context that yields one call


def value(n: int) -> bytes:
    return stored().replace(b"h-0", b"h-%d" % n)


@cache
def stored() -> bytes:
    """A hold as our store writes it, with its owners: raw puts carry the same bytes."""
    wall = time.time()  # noqa: TID251
    wish = updated(None, parse(hold("h-0"), Hold), FieldWriter("bench", "spec", wall))
    return encode(revise(None, wish, expect=ABSENT, part="spec", revision="1", wall=wall))


def hold(name: str) -> bytes:
    spec = {"target": "workload/bench/db", "knobs": ["cpu.weight"], "expires": "2036-01-01T00:00:00Z", "why": "bench"}
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold"}
    return json.dumps({**kind, "metadata": {"name": name, "namespace": "bench"}, "spec": spec}).encode()


@asynccontextmanager
async def raw_aiohttp(endpoint: str) -> AsyncIterator[Call]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def put(_: int) -> None:
            async with session.post(f"http://{endpoint}/v3/kv/put", data=put_body(next(NUMBERS))) as answer:
                await answer.read()
                answer.raise_for_status()

        yield put


@asynccontextmanager
async def raw_httpx2(endpoint: str) -> AsyncIterator[Call]:
    async with httpx2.AsyncClient() as client:

        async def put(_: int) -> None:
            answer = await client.post(f"http://{endpoint}/v3/kv/put", content=put_body(next(NUMBERS)))
            answer.raise_for_status()

        yield put


def put_body(n: int) -> bytes:
    key, data = base64.b64encode(f"/raw/{n}".encode()), base64.b64encode(value(n))
    return json.dumps({"key": key.decode(), "value": data.decode()}).encode()


@asynccontextmanager
async def raw_aetcd(endpoint: str) -> AsyncIterator[Call]:
    host, _, port = endpoint.rpartition(":")
    async with aetcd.Client(host=host, port=int(port)) as client:

        async def put(_: int) -> None:
            n = next(NUMBERS)
            await client.put(f"/raw/{n}".encode(), value(n))

        yield put


@asynccontextmanager
async def our_store(endpoint: str) -> AsyncIterator[Call]:
    store = open_store(f"etcd://{endpoint}/ours", time.time)  # noqa: TID251
    await store.list("MinimalReservationPolicy")

    async def create(_: int) -> None:
        await store.put(parse(policy(f"p-{next(NUMBERS)}"), MinimalReservationPolicy), expect=ABSENT)

    yield create
    await store.close()


@asynccontextmanager
async def rest(port: int, token: str, verb: Callable[[Client], Awaitable[object]]) -> AsyncIterator[Call]:
    clients = [await Client(port, token).open() for _ in range(IN_FLIGHT)]

    async def call(caller: int) -> None:
        await verb(clients[caller])

    yield call
    for client in clients:
        client.close()


async def create_policy(client: Client) -> None:
    await client.call("POST", COLLECTION, policy(f"p-{next(NUMBERS)}"))


async def create_hold(client: Client) -> None:
    await client.call("POST", HOLDS, hold(f"h-{next(NUMBERS)}"))


async def get_policy(client: Client) -> None:
    await client.call("GET", f"{COLLECTION}/known")


if __name__ == "__main__":
    sys.exit(main())
