"""Stock kube-scheduler on 1,000 nodes without machines: pods per second without our extender, and with it."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.facts import machine_facts
from j10ce.store.kube_access import read_access
from j10ce.store.kube_client import KubeClient
from tests.kube.conftest import install_crds
from tests.kube.plane import NAMESPACE, Plane, managing
from tests.lab.cluster import Cluster, running

NODES, PODS, UNITS = 1_000, 1_000, 300
CALLS = 300
AT_A_TIME = 32
PATH = "/api/v1/namespaces/default/pods"
POLICIES = "/apis/j10ce.io/v1alpha1/namespaces/default/minimalreservationpolicies"
ENOUGH = {"filter": 0.60, "filter + prioritize": 0.45}
VERBS: dict[str, dict[str, Any]] = {
    "without": {},
    "filter": {"filterVerb": "filter"},
    "filter + prioritize": {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1},
}


def main() -> int:
    machine_facts()
    with tempfile.TemporaryDirectory(prefix="j10ce-extender-") as folder, running(Path(folder)) as cluster:
        install_crds(cluster)
        cluster.call("POST", "/api/v1/namespaces", NAMESPACE)
        cluster.start_kwok(NODES)
        cluster.kill("kwok")  # nodes stay ready, as no controller looks at them; it would take CPU from all others
        with managing(cluster, Path(folder), level="info") as plane:
            reserve(cluster)
            rates = {name: asyncio.run(rate(cluster, plane, verbs)) for name, verbs in VERBS.items()}
            took_ms = sorted(calls(plane))
    return told(rates, took_ms)


def told(rates: Mapping[str, float], took_ms: list[float]) -> int:
    whole = rates["without"]
    for name, pods in rates.items():
        added = "" if name == "without" else f", {(1 / pods - 1 / whole) * 1000:.2f} ms more per pod"
        print(f"{name:24} {pods:6.0f} pods/s  {pods / whole:6.1%}{added}")
    p50, p99 = statistics.median(took_ms), took_ms[int(len(took_ms) * 0.99)]
    print(f"{'one call of filter':24} p50 {p50:.2f} ms, p99 {p99:.2f} ms, with the names of {NODES} nodes")
    missed = [name for name, least in ENOUGH.items() if rates[name] < least * whole]
    promise = ", ".join(f"{name} ≥ {least:.0%}" for name, least in ENOUGH.items())
    print(f"promised: {promise}: {'MISSED by ' + ' and '.join(missed) if missed else 'met'}")
    return bool(missed)


def reserve(cluster: Cluster) -> None:
    """Units on many nodes: the extender has to look at each."""
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minimum": {"cpu": "16", "memory": "64Gi"}, "units": UNITS}
    made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy", "metadata": {"name": "web"}}
    cluster.call("POST", POLICIES, {**made, "spec": spec})
    cluster.wait(
        "units", lambda: cluster.call("GET", f"{POLICIES}/web")["status"].get("units", {}).get("placed") == UNITS
    )


async def rate(cluster: Cluster, plane: Plane, verbs: Mapping[str, Any]) -> float:
    """Pods per second while the scheduler is busy: of the middle eight tenths."""
    client = KubeClient(read_access(f"kube://{cluster.kubeconfig('admin')}", {}))
    try:
        await create(client)
        since = str(await client.revision(PATH))
        extender = {"urlPrefix": f"{plane.url}/extender", "nodeCacheCapable": True, "ignorable": True, **verbs}
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
                told = json.loads(bytes(line.object))
                if told["spec"].get("nodeName"):
                    moments.setdefault(told["metadata"]["uid"], time.perf_counter())
            if len(moments) == PODS:
                break
    return sorted(moments.values())


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
