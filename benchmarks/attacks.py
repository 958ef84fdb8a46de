"""An administrator's gets and puts while others attack: a node, an editor, a viewer and strangers, one after the other.

The manager is a real process on SQLite; every attacker is a process of its own that sends as fast as it is answered.
The quiet before each attack is what it is compared with; memory is the most at any moment. Targets: p99 at most 3 × as
long, 32 MiB more memory at most, and every watch of an agent stays open. `python -m benchmarks.attacks WORDS` tries
those whose names have the words.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks import strangers
from benchmarks.facts import machine_facts
from benchmarks.rest import COLLECTION, SOURCES, Client, policy
from j10ce.bench.figures import percentile

BASE = "/apis/j10ce.io/v1alpha1"
ROLES = ("viewer", "editor", "node", "admin")
POLICIES, AGENTS, CONNECTIONS = 1000, 20, 8
QUIET_S, ATTACK_S = 3.0, 5.0
MOST_TIMES, MOST_MIB = 3.0, 32.0
MERGE, APPLY, JSON = "application/merge-patch+json", "application/apply-patch+yaml", "application/json"


class Sent(NamedTuple):
    """A request of an attack; `n` counts them."""

    role: str  # empty: a stranger
    method: str
    path: str
    body: Callable[[int], bytes] = lambda n: b""
    content: str = JSON


def report(**said: object) -> bytes:
    return json.dumps({"status": {"node": said}}).encode()


def hold(n: int, target: str = "node", owners: bytes = b"") -> bytes:
    spec = {"target": target, "knobs": ["cpu.max"], "expires": "2099-01-01T00:00:00Z", "why": "x", "node": "n1"}
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Hold", "metadata": {"name": f"h{n}"}, "spec": spec}
    return json.dumps(made).encode().replace(b'"metadata": {', b'"metadata": {' + owners)


def deep(levels: int) -> bytes:
    nested = b'{"f:a":' * levels + b"{}" + b"}" * levels
    return b'"managedFields": [{"manager": "x", "fieldsV1": ' + nested + b"}], "


STATUS = f"{BASE}/nodeqoses/n1/status"
HOLDS = f"{BASE}/namespaces/default/holds"
UNKNOWN = {f"unknown{n}": 1 for n in range(60)}
ATTACKS: dict[str, Sent] = {
    "node: a selector of 15,000 blanks": Sent(
        "node", "GET", f"{BASE}/nodedocuments/n1?labelSelector=" + "+" * 15_000 + "!"
    ),
    "node: YAML of base 60": Sent(
        "node", "PATCH", f"{STATUS}?fieldManager=x", lambda n: b"a: 1" + b":1" * 30_000, APPLY
    ),
    "node: an amount with one blank more each time": Sent(
        "node", "PATCH", STATUS, lambda n: report(capacity={"cpu": "4" + " " * (30_000 + n)}), MERGE
    ),
    "node: the largest report, again and again": Sent(
        "node", "PATCH", STATUS, lambda n: report(failing={f"QoSProfile/p{m}": f"{n} " * 300 for m in range(60)}), MERGE
    ),
    "node: 900 levels of owners": Sent("node", "POST", HOLDS, lambda n: hold(n, owners=deep(900))),
    "node: holds": Sent("node", "POST", HOLDS, lambda n: hold(n)),
    "editor: refused targets of 1 MB": Sent(
        "editor", "POST", HOLDS, lambda n: hold(n, "N" + "y" * (1_000_000 + n % 1000))
    ),
    "editor: sixty unknown fields in 1 MB": Sent(
        "editor", "POST", COLLECTION, lambda n: json.dumps({**UNKNOWN, "x": ["y"] * 200_000}).encode()
    ),
    "editor: 79,000 unknown fields in 1 MB": Sent(
        "editor", "POST", COLLECTION, lambda n: json.dumps({f"{m}": {} for m in range(79_000)}).encode()
    ),
    "editor: YAML of 60 KB": Sent(
        "editor", "PATCH", f"{BASE}/qosprofiles/p?fieldManager=x", lambda n: b"- a\n" * 15_000, APPLY
    ),
    "editor: creates": Sent("editor", "POST", COLLECTION, lambda n: policy(f"e-{os.getpid()}-{n}")),
    "viewer: lists of everything": Sent("viewer", "GET", COLLECTION),
    "viewer: lists with a selector": Sent("viewer", "GET", f"{COLLECTION}?fieldSelector=status.phase%3DActive"),
    "stranger: wrong tokens": Sent("", "GET", COLLECTION),
    "stranger: health": Sent("", "GET", "/healthz"),
}  # fmt: skip
UNREAD, WATCHES, SILENT = "viewer: lists that nobody reads", "viewer: 300 watches", "stranger: 3,000 silent connections"
TABLES = "editor: 99 tables of a large object, watched"
PIPELINED, HEADERS = "stranger: requests that wait for no answers", "stranger: headers without end"
RESETS = "stranger: gRPC calls that are given up at once"
UNFINISHED = "editor: gRPC messages of 1 MB that do not end"
UNREAD_CALLS = "viewer: lists over gRPC that nobody reads"
EVERY = (*ATTACKS, UNREAD, UNREAD_CALLS, WATCHES, SILENT, TABLES, UNFINISHED, PIPELINED, HEADERS, RESETS)


def main() -> int:
    if len(sys.argv) > 2:
        attack(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4]))
        return 0
    machine_facts()
    where = Path(os.environ.get("J10CE_BENCH_DIR", Path.cwd()))
    with tempfile.TemporaryDirectory(prefix=".bench-attacks-", dir=where) as folder, plane(Path(folder)) as served:
        return uvloop.run(measure(served, sys.argv[1] if sys.argv[1:] else ""))


class Served(NamedTuple):
    pid: int
    port: int
    tokens: dict[str, str]
    grpc: int  # port


@contextmanager
def plane(folder: Path) -> Iterator[Served]:
    """A manager with an auth file that has one token of every role; the node's speaks for n1."""
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    tokens = {}
    for role in ROLES:
        node = ("--node", "n1") if role == "node" else ()
        made = [sys.executable, "-m", "j10ce.cli.main", "token", "create", role, "--role", role, *node]
        tokens[role] = subprocess.check_output(
            [*made, "--auth", folder / "auth.yaml"], env=env, text=True, stderr=subprocess.DEVNULL
        ).strip()
    argv = ["--store", f"sqlite://{folder}/objects.db", "--listen", "127.0.0.1:0", "--auth", folder / "auth.yaml"]
    argv += ["--kubeconfig", folder / "kubeconfig", "--token-file", folder / "token"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        grpc = free.getsockname()[1]
    argv += ["--grpc-listen", f"127.0.0.1:{grpc}"]
    with subprocess.Popen(
        [sys.executable, "-m", "j10ce.manager.main", *argv], env=env, stderr=subprocess.DEVNULL
    ) as child:
        while not (folder / "kubeconfig").exists() and child.poll() is None:
            time.sleep(0.05)
        try:
            body = json.loads((folder / "kubeconfig").read_text())
            yield Served(child.pid, int(body["clusters"][0]["cluster"]["server"].rpartition(":")[2]), tokens, grpc)
        finally:
            child.terminate()


async def measure(served: Served, wanted: str) -> int:
    """`wanted`: a part of the names of the attacks that are tried."""
    admin = await Client(served.port, served.tokens["admin"]).open()
    await admin.call("POST", f"{BASE}/nodeqoses", json.dumps(node("n1")).encode())
    for n in range(POLICIES):
        await admin.call("POST", COLLECTION, policy(f"p-{n}"))
    print(f"{'attack':<46}{'get p99':>9}{'×':>6}{'put p99':>10}{'×':>6}{'memory':>10}  watches", flush=True)
    beyond = False
    async with agents(served) as alive:
        await latencies(admin, QUIET_S)
        for name in (name for name in EVERY if wanted in name):
            beyond |= await under(name, admin, served, alive)
    print(f"targets: {MOST_TIMES:g} ×, {MOST_MIB:g} MiB, every watch")
    return int(beyond)


async def under(name: str, admin: Client, served: Served, alive: Callable[[], int]) -> bool:
    """Whether an attack did more than it may."""
    quiet, before = await latencies(admin, QUIET_S), resident_mib(served.pid)
    forget_peak(served.pid)
    command = [sys.executable, "-m", "benchmarks.attacks", name, str(served.port), json.dumps(served.tokens)]
    command.append(str(served.grpc))
    attacker = await asyncio.create_subprocess_exec(*command)
    await asyncio.sleep(1)  # its start is not part of the attack
    latency = await latencies(admin, ATTACK_S)
    most = peak_mib(served.pid)
    attacker.kill()
    await attacker.wait()
    times = [hit / rest for hit, rest in zip(latency, quiet, strict=True)]
    more = most - before
    row = f"{latency[0] * 1000:7.1f}ms{times[0]:6.1f}{latency[1] * 1000:8.1f}ms{times[1]:6.1f}{more:+7.1f}MiB"
    print(f"{name:<46}{row}  {alive()} of {AGENTS}", flush=True)
    return max(times) > MOST_TIMES or more > MOST_MIB or alive() < AGENTS


async def latencies(admin: Client, seconds: float) -> tuple[float, float]:
    """p99 of an administrator's gets and puts, in seconds."""
    gets, puts, until, n = [], [], time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        await admin.call("GET", f"{COLLECTION}/p-{n % POLICIES}")
        between = time.perf_counter()
        gets.append(between - began)
        if n % 4 == 0:
            body = policy(f"p-{n % POLICIES}", cpu=1000 + time.perf_counter_ns() % 100_000)
            began = time.perf_counter()
            await admin.call("PUT", f"{COLLECTION}/p-{n % POLICIES}", body)
            puts.append(time.perf_counter() - began)
        n += 1
        await asyncio.sleep(0.001)
    return percentile(sorted(gets), 0.99), percentile(sorted(puts), 0.99)


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": name}}


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """The most that was resident since `forget_peak`: what is held for a moment counts."""
    peak = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2]
    return int(peak.split()[0]) / 1024


@asynccontextmanager
async def agents(served: Served) -> AsyncIterator[Callable[[], int]]:
    """Watches of documents; gives how many are still open."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(served, n)) for n in range(AGENTS)]
        yield lambda: sum(not task.done() for task in tasks)
        for task in tasks:
            task.cancel()


async def follow(served: Served, n: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = f"Host: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.tokens['admin']}\r\n\r\n"
    writer.write(f"GET {BASE}/nodedocuments/a{n}?watch=1 HTTP/1.1\r\n{head}".encode())
    while await reader.read(65536):
        pass


# -- the attackers, in processes of their own


def attack(name: str, port: int, tokens: dict[str, str], grpc: int) -> None:
    kept: list[socket.socket] = []
    match name:
        case _ if name == UNREAD:
            kept = [unread(port, tokens["viewer"]) for _ in range(60)]
        case _ if name == WATCHES:
            kept = [
                asked(port, tokens["viewer"], f"{BASE}/qosprofiles?w%61tch=1&resourceVersion=0") for _ in range(300)
            ]
        case _ if name == SILENT:
            kept = [socket.create_connection(("127.0.0.1", port)) for _ in range(3000)]
        case _ if name == PIPELINED:
            strangers.endless(port, strangers.ASK * 5994)
        case _ if name == HEADERS:
            strangers.endless(port, strangers.ASK[:-2] + b"ab:cd\r\n" * 9000, connections=100)
        case _ if name == RESETS:
            strangers.resets(grpc)
        case _ if name == UNREAD_CALLS:
            strangers.unread(grpc, tokens["viewer"])
        case _ if name == UNFINISHED:
            strangers.unfinished(grpc, tokens["editor"])
        case _ if name == TABLES:
            uvloop.run(watch_tables(port, tokens["editor"]))
        case _:
            uvloop.run(flood(ATTACKS[name], port, tokens))
    while kept:
        time.sleep(1)


def asked(port: int, token: str, path: str, times: int = 1) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", port))
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    made.sendall(head.encode() * times)
    return made


def unread(port: int, token: str) -> socket.socket:
    return asked(port, token, COLLECTION, times=5)


async def watch_tables(port: int, token: str) -> None:
    """All that it gets is read at once; what it asks for is changed again and again."""
    owners = [{"manager": f"m{n}", "operation": "Apply", "fieldsV1": {f"f:{'x' * 900}": {}}} for n in range(850)]
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "spec": {"tier": "standard"}}
    made["metadata"] = {"name": f"large-{os.getpid()}", "managedFields": owners}
    editor = await Client(port, token).open()
    await editor.call("POST", f"{BASE}/qosprofiles", json.dumps(made).encode())
    path = f"{BASE}/qosprofiles/{made['metadata']['name']}"
    head = f"GET {path}?watch=1&includeObject=Object HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    head += f"Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\nAuthorization: Bearer {token}\r\n\r\n"
    change = Sent("editor", "PATCH", path, lambda n: b'{"metadata": {"annotations": {"n": "%d"}}}' % n, MERGE)
    async with asyncio.TaskGroup() as group:
        for _ in range(99):
            group.create_task(read_all(port, head.encode()))
        group.create_task(one(change, port, {"editor": token}, 0))


async def read_all(port: int, head: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    writer.write(head)
    while await reader.read(1 << 20):
        pass


async def flood(sent: Sent, port: int, tokens: dict[str, str]) -> None:
    await asyncio.gather(*(one(sent, port, tokens, n) for n in range(CONNECTIONS)))


async def one(sent: Sent, port: int, tokens: dict[str, str], n: int) -> None:
    """One connection at a time, for ever: one that is closed is opened again."""
    head = f"{sent.method} {sent.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {sent.content}\r\n"
    head += f"Authorization: Bearer {tokens.get(sent.role, 'wrong')}\r\n"
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        try:
            while True:
                n += CONNECTIONS
                body = sent.body(n)
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                received = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(received.partition(b"content-length: ")[2].partition(b"\r")[0]))
        except (OSError, asyncio.IncompleteReadError):
            writer.close()


if __name__ == "__main__":
    sys.exit(main())
