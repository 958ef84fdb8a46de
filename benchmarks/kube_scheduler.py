"""Bound pods per second of stock kube-scheduler and of ours, in one cluster of nodes without machines, in turns.

    python -m benchmarks kube_scheduler                            1,000 nodes, all cases
    python -m benchmarks.kube_scheduler 5000 3 basic mixed         5,000 nodes, three rounds, two cases

Pods are there before a scheduler starts; a rate is that of the middle eight tenths of them, seen by a watch. CPU is
the scheduler's own, in the same stretch. Stock has `--kube-api-qps` raised and its default sampling of nodes; ours
looks at all of them. Both write events. A ratio is the median of those within each round.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from benchmarks.facts import cpu_s, machine_facts
from j10ce.errors import Conflict, Unavailable, Unsure
from j10ce.kube.access import read_access
from j10ce.kube.client import KubeClient
from tests.etcd.cluster import free_ports
from tests.lab.kube.cluster import Cluster, running

NODES, ROUNDS, PODS = 1_000, 5, 1_000
AT_A_TIME: Final = 32
API_NODES, PATH = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
STOCK, OURS, BY_SLO = "kube-scheduler", "ours", "ours, QosAware"
BAR: Final = {"basic": 1.2, "mixed": 1.2}  # of stock's pods per second; 1.0 for each other case
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB: Final = {"app": "web"}
Object = dict[str, Any]


class Run(NamedTuple):
    rate: float  # pods per second
    cpu_ms: float  # per pod


class _Spec(Struct, rename="camel"):
    node_name: str = ""


class _Meta(Struct, rename="camel"):
    name: str
    resource_version: str


class _Pod(Struct):
    metadata: _Meta
    spec: _Spec


def main() -> int:
    nodes, rounds, *named = [*sys.argv[1:3], *[str(n) for n in (NODES, ROUNDS)[len(sys.argv[1:3]) :]], *sys.argv[3:]]
    machine_facts()
    missed = list[str]()
    with tempfile.TemporaryDirectory(prefix="j10ce-scheduler-") as folder, running(Path(folder)) as cluster:
        asyncio.run(all_of(cluster, API_NODES, [node(n) for n in range(int(nodes))]))
        priority(cluster)
        print(f"{nodes} nodes, {PODS} pods, {rounds} rounds; pods/s and CPU ms per pod; ratio of pods/s to stock's")
        for name in named or CASES:
            runs: dict[str, list[Run]] = {who: [] for who in STARTS}
            for who in list(STARTS) * int(rounds):
                runs[who].append(asyncio.run(measured(cluster, who, name, int(nodes))))
            for who, made in runs.items():
                print(row(name, who, made, runs[STOCK]), flush=True)
            if ratio(runs[OURS], runs[STOCK]) < BAR.get(name, 1.0):
                missed.append(name)
    print(f"bars: {'MISSED by ' + ', '.join(missed) if missed else 'met'}")
    return bool(missed)


def row(name: str, who: str, runs: list[Run], stock: list[Run]) -> str:
    rate, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
    spread = f"{min(run.rate for run in runs):.0f} to {max(run.rate for run in runs):.0f}"
    return f"{name:14} {who:15} {rate:6.0f} ({spread:>12}) {cpu:7.2f} ms  {ratio(runs, stock):5.2f}"


def ratio(runs: list[Run], stock: list[Run]) -> float:
    return statistics.median(ours.rate / theirs.rate for ours, theirs in zip(runs, stock, strict=True))


# -- one run


async def measured(cluster: Cluster, who: str, case: str, nodes: int) -> Run:
    client = KubeClient(read_access(f"kube://{cluster.kubeconfig('admin')}", {}))
    try:
        if case == "preemption":
            await create(client, PATH, filling(nodes))
        pods = [CASES[case](n) for n in range(PODS)]
        await create(client, PATH, pods)
        since = str(await client.revision(PATH))
        process = STARTS[who](cluster)
        try:
            moments = await bound(client, since, {made["metadata"]["name"] for made in pods}, process)
        finally:
            cluster.kill(who)
    finally:
        await client.close()
    cluster.wait("an empty cluster", lambda: emptied(cluster))
    (first, at_first), (last, at_last) = moments[PODS // 10], moments[PODS * 9 // 10]
    count = PODS * 9 // 10 - PODS // 10
    return Run(count / (last - first), (at_last - at_first) * 1000 / count)


def emptied(cluster: Cluster) -> bool:
    cluster.call("DELETE", f"{PATH}?gracePeriodSeconds=0")
    return not cluster.call("GET", f"{PATH}?limit=1")["items"]


async def bound(client: KubeClient, since: str, names: set[str], pid: int) -> list[tuple[float, float]]:
    """When each was seen with a node, and the CPU seconds of the scheduler until then."""
    moments, seen = list[tuple[float, float]](), set[str]()
    async for pod in changes(client, since):
        if pod.spec.node_name and pod.metadata.name in names and pod.metadata.name not in seen:
            seen.add(pod.metadata.name)
            marked = len(moments) in (PODS // 10, PODS * 9 // 10)
            moments.append((time.perf_counter(), cpu_s(pid) if marked else 0.0))
        if len(moments) == len(names):
            break
    return moments


async def changes(client: KubeClient, since: str) -> AsyncIterator[_Pod]:
    """For ever: the API server ends a watch that does not keep up."""
    decode = msgspec.json.Decoder(_Pod).decode
    while True:
        async with aclosing(client.watch(PATH, since)) as lines:
            async for line in lines:
                if line.type == "MODIFIED":
                    pod = decode(line.object)
                    since = pod.metadata.resource_version
                    yield pod


async def all_of(cluster: Cluster, path: str, objects: list[Object]) -> None:
    client = KubeClient(read_access(f"kube://{cluster.kubeconfig('admin')}", {}))
    try:
        await create(client, path, objects)
    finally:
        await client.close()


async def create(client: KubeClient, path: str, objects: list[Object]) -> None:
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(made: Object) -> None:
        async with room:
            await insist(client, path, made)

    async with asyncio.TaskGroup() as group:
        for made in objects:
            group.create_task(one(made))


async def insist(client: KubeClient, path: str, made: Object) -> None:
    """Create it, also where the machine is so busy that answers do not come in time."""
    while True:
        try:
            await client.create(path, made)
        except Conflict:  # an answer was lost
            return
        except (Unsure, Unavailable):
            await asyncio.sleep(1.0)
        else:
            return


# -- schedulers


def stock(cluster: Cluster) -> int:
    cluster.start_scheduler()
    return cluster.pid(STOCK)


def ours(cluster: Cluster, *, by_slo: bool = False) -> int:
    name, file = BY_SLO if by_slo else OURS, cluster.folder / "ours.json"
    file.write_text(json.dumps(configuration(by_slo=by_slo)))
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "j10ce.scheduler.process.main", "--config", file]
    argv += ["--store", f"kube://{cluster.kubeconfig('admin')}", "--listen", f"127.0.0.1:{port}"]
    cluster.start(name, argv)
    return cluster.pid(name)


def configuration(*, by_slo: bool) -> Object:
    profile: Object = {"schedulerName": "default-scheduler"}
    if by_slo:
        disabled = [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}]
        profile["plugins"] = {"multiPoint": {"enabled": [{"name": "QosAware"}], "disabled": disabled}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


STARTS: Final[dict[str, Callable[[Cluster], int]]] = {
    STOCK: stock,
    OURS: ours,
    BY_SLO: lambda cluster: ours(cluster, by_slo=True),
}


# -- nodes and pods


def node(n: int) -> Object:
    name = f"node-{n:04}"
    labels = {HOST: name, ZONE: f"zone-{n % 5}", "disk": "ssd" if n % 3 else "hdd"}
    taints = [{"key": "old", "effect": "PreferNoSchedule"}] if n % 10 == 1 else []
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}


def priority(cluster: Cluster) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        body = {"metadata": {"name": name}, "value": value}
        cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


def pod(name: str, cpu: str = "100m", memory: str = "500Mi", **spec: Any) -> Object:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    wanted = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name, "labels": WEB}, "spec": wanted}


def plain(n: int) -> Object:
    return pod(f"pod-{n}")


def mixed(n: int) -> Object:
    """Of 200 shapes; a third with wishes about nodes, one in twenty about its neighbours."""
    chance = random.Random(n % 200)
    cpu, memory = f"{chance.randrange(50, 1000, 10)}m", f"{chance.randrange(64, 4096, 16)}Mi"
    if n % 40 == 0:
        return spread(n)
    if n % 20 == 0:
        return apart(n, f"lone-{n % 7}")
    match n % 9:
        case 0:
            return pod(f"pod-{n}", cpu, memory, nodeSelector={"disk": "ssd"})
        case 3:
            return pod(f"pod-{n}", cpu, memory, affinity={"nodeAffinity": {PREFERRED: [preferred()]}})
        case 6:
            return pod(f"pod-{n}", cpu, memory, tolerations=[{"key": "old", "operator": "Exists"}])
    return pod(f"pod-{n}", cpu, memory)


def preferred() -> Object:
    test = {"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}
    return {"weight": 10, "preference": {"matchExpressions": [test]}}


def choosy(n: int) -> Object:
    test = {"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [test]}]}
    return pod(f"pod-{n}", affinity={"nodeAffinity": {REQUIRED: required}})


def together(n: int) -> Object:
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": ZONE}
    return pod(f"pod-{n}", affinity={"podAffinity": {REQUIRED: [term]}})


def apart(n: int, app: str = "") -> Object:
    app = app or f"app-{n % 10}"
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    made = pod(f"pod-{n}", affinity={"podAntiAffinity": {REQUIRED: [term]}})
    made["metadata"]["labels"] = {"app": app}
    return made


def spread(n: int) -> Object:
    selector = {"matchLabels": WEB}
    constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return pod(f"pod-{n}", topologySpreadConstraints=[constraint])


def filling(nodes: int) -> list[Object]:
    """Four on each node: whoever comes then needs the place of one."""
    return list(_filling(nodes))


def _filling(nodes: int) -> Iterator[Object]:
    for n in range(nodes):
        for k in range(4):
            yield pod(f"low-{n}-{k}", "7900m", "1Gi", nodeName=f"node-{n:04}", priorityClassName="low")


def urgent(n: int) -> Object:
    return pod(f"pod-{n}", "7900m", "1Gi", priorityClassName="high")


CASES: Final[dict[str, Callable[[int], Object]]] = {
    "basic": plain,
    "mixed": mixed,
    "node affinity": choosy,
    "affinity": together,
    "anti-affinity": apart,
    "spread": spread,
    "preemption": urgent,
}

if __name__ == "__main__":
    raise SystemExit(main())
