"""REST on SQLite: the real manager process on a real disk, where an acknowledged write survives power loss.

The client is raw sockets in this process, so that on two CPUs the manager has one for itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.facts import cpu_s, machine_facts

SOURCES = Path(__file__).resolve().parent.parent / "src"
COLLECTION = "/apis/j10ce.io/v1alpha1/namespaces/bench/minimalreservationpolicies"
FIRST = "500m"  # of every policy, before it is changed
CREATES, SINGLE, GETS, CHANGES, IN_FLIGHT = 4000, 1000, 10_000, 10_000, 32


def main() -> int:
    machine_facts()
    where = Path(os.environ.get("J10CE_BENCH_DIR", Path.cwd()))
    with tempfile.TemporaryDirectory(prefix=".bench-rest-", dir=where) as folder:
        flushes = flush_rate(Path(folder))
        print(f"# disk of {where}: {flushes:.0f} flushes/s of 4 KiB", flush=True)
        with manager(Path(folder)) as served:
            return uvloop.run(measure(served, flushes))


class Served(NamedTuple):
    pid: int
    port: int
    token: str


@contextmanager
def manager(folder: Path, store: str = "") -> Iterator[Served]:
    """The store is a SQLite file unless given."""
    kubeconfig = folder / "kubeconfig"
    files = ("--token-file", folder / "token", "--kubeconfig", kubeconfig)
    argv = [sys.executable, "-m", "j10ce.manager.main", "--store", store or f"sqlite://{folder}/objects.db"]
    with subprocess.Popen(
        [*argv, "--listen", "127.0.0.1:0", *files], env={**os.environ, "PYTHONPATH": str(SOURCES)}
    ) as child:
        while not kubeconfig.exists() and child.poll() is None:
            time.sleep(0.05)
        try:
            body = json.loads(kubeconfig.read_text())
            port = int(body["clusters"][0]["cluster"]["server"].rpartition(":")[2])
            yield Served(child.pid, port, body["users"][0]["user"]["token"])
        finally:
            child.terminate()


def flush_rate(folder: Path, seconds: float = 1.0) -> float:
    page, count, began = bytes(4096), 0, time.perf_counter()
    with (folder / "flush").open("wb", buffering=0) as file:
        while time.perf_counter() - began < seconds:
            file.write(page)
            os.fdatasync(file.fileno())
            count += 1
    return count / (time.perf_counter() - began)


class Client:
    """One kept connection, one request at a time."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._content = "Content-Type: application/json\r\n"

    async def open(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        return self

    def close(self) -> None:
        self._writer.close()

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        content = f"{self._content}Content-Length: {len(body)}\r\n" if body else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{content}\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
        data = await self._reader.readexactly(length)
        if head[9:12] not in (b"200", b"201"):
            raise RuntimeError(f"{method} {path}: {head!r} {data!r}")
        return data

    async def watch(self, path: str, count: int) -> list[dict[str, Any]]:
        """Every event until so many amounts were seen; the manager writes status in between."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")
        rest, events, amounts = b"", [], set[str]()
        while len(amounts) < count:
            size = int((await self._reader.readuntil(b"\r\n"))[:-2], 16)
            rest += (await self._reader.readexactly(size + 2))[:-2]
            *lines, rest = rest.split(b"\n")
            fresh = [json.loads(line) for line in lines]
            events += fresh
            amounts |= {*map(cpu_of, fresh)} - {FIRST}
        return events


def cpu_of(event: dict[str, Any]) -> str:
    return str(event["object"]["spec"]["minimum"]["cpu"])


def policy(name: str, cpu: int = 500) -> bytes:
    spec = {"selector": {"matchLabels": {"app": name}}, "minimum": {"cpu": f"{cpu}m", "memory": "1Gi"}}
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}
    return json.dumps({**kind, "metadata": {"name": name, "namespace": "bench"}, "spec": spec}).encode()


async def measure(served: Served, flushes: float) -> int:
    clients = [await Client(served.port, served.token).open() for _ in range(IN_FLIGHT)]

    async def create(client: Client, n: int) -> None:
        await client.call("POST", COLLECTION, policy(f"p-{n}"))

    async def create_more(client: Client, n: int) -> None:
        await client.call("POST", COLLECTION, policy(f"q-{n}"))

    async def get(client: Client, n: int) -> None:
        await client.call("GET", f"{COLLECTION}/p-{n % CREATES}")

    rounds = (
        ("creates/s, 32 in flight", 1500, clients, CREATES, create),
        ("creates/s, 1 in flight", 500, clients[:1], SINGLE, create_more),
        ("gets/s, 32 in flight", 5000, clients, GETS, get),
    )
    below = False
    for name, target, using, count, call in rounds:
        before = cpu_s(served.pid)
        speed = await rate(using, count, call)
        cpu_us = (cpu_s(served.pid) - before) / count * 1e6
        below |= speed < target
        shares = f"{speed / flushes:.2f} of the disk's flush rate, {cpu_us:.0f} µs of the manager's CPU per call"
        print(f"{name:<26}{speed:8.0f}   target {target}   {shares}", flush=True)
    return int(below | await watch_in_order(clients, served.port, served.token))


async def rate(clients: list[Client], count: int, call: Callable[[Client, int], Awaitable[None]]) -> float:
    """Calls per second over all clients, each with one call in flight."""
    numbers = iter(range(count))

    async def work(client: Client) -> None:
        for n in numbers:
            await call(client, n)

    began = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    return count / (time.perf_counter() - began)


async def watch_in_order(clients: list[Client], port: int, token: str) -> bool:
    """Whether a watcher missed, repeated or reordered anything while others wrote."""
    listing = json.loads(await clients[0].call("GET", f"{COLLECTION}?limit=1"))
    since = listing["metadata"]["resourceVersion"]
    watcher = await Client(port, token).open()

    async def change(client: Client, n: int) -> None:
        await client.call("PUT", f"{COLLECTION}/p-{n % 500}", policy(f"p-{n % 500}", cpu=1000 + n))

    began = time.perf_counter()
    events, changes = await asyncio.gather(
        watcher.watch(f"{COLLECTION}?watch=1&resourceVersion={since}", CHANGES), rate(clients, CHANGES, change)
    )
    took_s = time.perf_counter() - began
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    right = revisions == sorted(set(revisions)) and len({*map(cpu_of, events)} - {FIRST}) == CHANGES
    verdict = "in order, none lost, none twice" if right else "WRONG"
    print(f"watch of {CHANGES} changes: {verdict}; {changes:.0f} updates/s, all seen after {took_s:.1f} s")
    return not right


if __name__ == "__main__":
    sys.exit(main())
