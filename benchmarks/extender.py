"""Stock kube-scheduler on 1,000 nodes without machines: pods per second without our extender, and with it.

One more is shown: an extender that decides nothing and answers at once. What it costs is the price of asking somebody,
whoever it is: kube-scheduler writes the names of all nodes, and reads them.

Rounds are short and take turns; a share is the median of those within each round.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, closing, contextmanager, suppress
from itertools import pairwise
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.facts import machine_facts
from j10ce.bench.figures import percentile
from j10ce.kube.access import read_access
from j10ce.kube.client import KubeClient
from tests.kube.manifests import install_crds
from tests.kube.plane import NAMESPACE, Plane, managing
from tests.lab.kube.cluster import Cluster, running

NODES, PODS, UNITS, ROUNDS = 1_000, 600, 300, 7
CALLS = 300
AT_A_TIME = 32
PATH = "/api/v1/namespaces/default/pods"
POLICIES = "/apis/j10ce.io/v1alpha1/namespaces/default/minimalreservationpolicies"
ENOUGH = {"filter": 0.60, "filter + prioritize": 0.45}
WHOLE, NOTHING = "without", "one that decides nothing"
FILTER: dict[str, Any] = {"filterVerb": "filter"}
VERBS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    NOTHING: FILTER,
    "filter": FILTER,
    "filter + prioritize": {**FILTER, "prioritizeVerb": "prioritize", "weight": 1},
}
Rates = dict[str, list[float]]  # pods per second, by what was asked, per round


def main() -> int:
    machine_facts()
    with tempfile.TemporaryDirectory(prefix="j10ce-extender-") as folder, running(Path(folder)) as cluster:
        install_crds(cluster)
        cluster.call("POST", "/api/v1/namespaces", NAMESPACE)
        cluster.start_kwok(NODES)
        cluster.kill("kwok")  # nodes stay ready, as no controller looks at them; it would take CPU from all others
        with managing(cluster, Path(folder), level="info") as plane:
            reserve(cluster)
            rates: Rates = {name: [] for name in VERBS}
            with indifferent() as port:
                urls = {NOTHING: f"http://127.0.0.1:{port}"}
                for name, verbs in list(VERBS.items()) * ROUNDS:
                    url = urls.get(name, f"{plane.url}/extender")
                    rates[name].append(asyncio.run(rate(cluster, url, verbs)))
            took_ms = sorted(calls(plane))
    return judged(rates, took_ms)


def judged(rates: Rates, took_ms: list[float]) -> int:
    for name, rounds in rates.items():
        pods, whole = statistics.median(rounds), statistics.median(rates[WHOLE])
        of = "".join(f"{share(rates, name, other):>11.1%} of {other}" for other in (WHOLE, NOTHING))
        print(f"{name:26}{pods:6.0f} pods/s {(1 / pods - 1 / whole) * 1000:6.2f} ms more per pod {of}")
    p50, p99 = statistics.median(took_ms), percentile(took_ms, 0.99)
    print(f"{'one call of filter':26} p50 {p50:.2f} ms, p99 {p99:.2f} ms, with the names of {NODES} nodes")
    missed = [name for name, least in ENOUGH.items() if share(rates, name, WHOLE) < least]
    promise = ", ".join(f"{name} ≥ {least:.0%}" for name, least in ENOUGH.items())
    print(f"promised of {WHOLE}: {promise}: {'MISSED by ' + ' and '.join(missed) if missed else 'met'}")
    return bool(missed)


def share(rates: Rates, name: str, other: str) -> float:
    return statistics.median(ours / theirs for ours, theirs in zip(rates[name], rates[other], strict=True))


def reserve(cluster: Cluster) -> None:
    """Units on many nodes: the extender has to look at each."""
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minimum": {"cpu": "16", "memory": "64Gi"}, "units": UNITS}
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy", "metadata": {"name": "web"}}
    cluster.call("POST", POLICIES, {**made, "spec": spec})
    cluster.wait(
        "units", lambda: cluster.call("GET", f"{POLICIES}/web")["status"].get("units", {}).get("placed") == UNITS
    )


async def rate(cluster: Cluster, url: str, verbs: Mapping[str, Any]) -> float:
    """Pods per second while the scheduler is busy: of the middle eight tenths."""
    client = KubeClient(read_access(f"kube://{cluster.kubeconfig('admin')}", {}))
    try:
        await create(client)
        since = str(await client.revision(PATH))
        extender = {"urlPrefix": url, "nodeCacheCapable": True, "ignorable": True, **verbs}
        config = {"percentageOfNodesToScore": 100, **({"extenders": [extender]} if verbs else {})}
        cluster.start_scheduler(config)
        try:
            moments = await bound(client, since)
        finally:
            cluster.kill("kube-scheduler")
    finally:
        await client.close()
    cluster.call("DELETE", f"{PATH}?gracePeriodSeconds=0")
    cluster.wait("an empty cluster", lambda: not cluster.call("GET", f"{PATH}?limit=1")["items"])
    middle = moments[PODS // 10 : PODS * 9 // 10]
    return len(middle) / (middle[-1] - middle[0])


async def create(client: KubeClient) -> None:
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(n: int) -> None:
        async with room:
            await client.create(PATH, pod(f"pod-{n:04}"))

    async with asyncio.TaskGroup() as group:
        for n in range(PODS):
            group.create_task(one(n))


async def bound(client: KubeClient, since: str) -> list[float]:
    """When each pod was seen with a node."""
    moments: dict[str, float] = {}
    async with aclosing(client.watch(PATH, since)) as lines:
        async for line in lines:
            if line.type == "MODIFIED":
                body = json.loads(bytes(line.object))
                if body["spec"].get("nodeName"):
                    moments.setdefault(body["metadata"]["uid"], time.perf_counter())
            if len(moments) == PODS:
                break
    return sorted(moments.values())


@contextmanager
def indifferent() -> Iterator[int]:
    """The port of an extender, a process of its own, that takes every node."""
    ours, theirs = Pipe()
    process = Process(target=answer_at_once, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def answer_at_once(parent: Connection) -> None:
    body = json.dumps({"NodeNames": [f"fake-{n:04}" for n in range(NODES)]}).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head.lower())
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(answer)

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        parent.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


def calls(plane: Plane) -> Iterator[float]:
    """Milliseconds of one call after the other over one connection."""
    names = [f"fake-{n:04}" for n in range(NODES)]
    with closing(http.client.HTTPConnection("127.0.0.1", plane.port, timeout=10)) as connection:
        moments = [time.perf_counter()]
        for n in range(CALLS):
            made = pod(f"call-{n}")
            made["metadata"] |= {"namespace": "default", "uid": "same"}
            connection.request("POST", "/extender/filter", json.dumps({"Pod": made, "NodeNames": names}))
            connection.getresponse().read()
            moments.append(time.perf_counter())
    return ((later - sooner) * 1000 for sooner, later in pairwise(moments))


def pod(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    spec = {"containers": [{"name": "c", "image": "none", "resources": resources}]}
    return {"metadata": {"name": name}, "spec": spec}


if __name__ == "__main__":
    sys.exit(main())
