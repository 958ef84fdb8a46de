"""A controller-manager with 5,000 nodes of 20 pods each: its memory, and how long a change of a policy takes."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import statistics
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from msgspec import Raw
from msgspec.structs import replace

from benchmarks.facts import machine_facts
from j10ce.kube.resource import resources
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.roster import KubeRoster
from j10ce.manager.kube_plane import LONGEST_REST_S
from j10ce.manager.main import COLLECT
from j10ce.manager.policies.history import ensure_built_in
from j10ce.manager.policies.keeper import judge_policies
from j10ce.model.kinds import Meta, MinimalReservationPolicy, NodeQoS, NodeQoSStatus, NodeReport
from j10ce.model.quantity import Quantity
from j10ce.model.schema import convert
from j10ce.model.stored import Event, Listing
from j10ce.policy.profiles import builtin
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
from j10ce.store.memory import MemoryStore

NODES, PODS, NAMESPACES, POLICIES = 5_000, 20, 50, 200
CHANGES = 10
WIDE = 5  # policies for every pod of their namespace: 2,000 pods on as many nodes, and 500 units
SETTLE_S = 5.0  # for five thousand reports at once to be judged
MOST_MIB, MOST_S = 600.0, 2.0
wall = time.time  # noqa: TID251


class Cluster:
    """Pods and nodes as an API server would list them; nothing happens to them."""

    async def list(self, kind: str) -> Listing:
        resource = resources()[kind]
        make = {"Pod": _pods, "Node": _nodes, "Namespace": _namespaces}[kind]
        return Listing(tuple(resource.read(Raw(json.dumps(obj).encode())) for obj in make()), "1")

    async def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]  # never


async def measure() -> bool:
    store = MemoryStore(wall)
    await ensure_built_in(store, builtin())
    for n in range(NODES):
        await store.put(_printed(n))
    for n in range(POLICIES):
        await store.put(_policy(f"p{n:03}", f"team-{n % NAMESPACES}", {"app": f"app-{n}"}, units=50))
    for n in range(WIDE):
        await store.put(_policy(f"wide-{n}", f"team-{n}", {}, units=500))
    view = View(store)
    book = Occupancy()
    occupants = Occupants(Cluster(), view, wall, book, Offers())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(view.run()), group.create_task(occupants.run())]
        began = time.perf_counter()
        await occupants.ready()
        print(f"{NODES} nodes and {NODES * PODS} pods read in {time.perf_counter() - began:.1f} s")
        roster = KubeRoster(occupants, book, view.silence.of)
        how = {"roster": roster, "namespace_limit": 100, "longest_rest_s": LONGEST_REST_S}
        judging = judge_policies(store, view, wall, **how)
        tasks.append(group.create_task(judging))
        await _judged(store, f"p{POLICIES - 1:03}", f"team-{(POLICIES - 1) % NAMESPACES}", 1)
        print(f"{POLICIES} policies decided after {time.perf_counter() - began:.1f} s")
        await _obey(store, view)
        await asyncio.sleep(SETTLE_S)
        narrow = [await _change(store, f"p{n:03}", f"team-{n % NAMESPACES}") for n in range(CHANGES)]
        wide = [await _change(store, f"wide-{n}", f"team-{n}") for n in range(WIDE)]
        gc.collect()
        mib = _rss_mib()
        for task in tasks:
            task.cancel()
    print(f"{'memory':44} {mib:.0f} MiB")
    for words, changes in (("a policy change, fully processed", narrow), ("one that concerns 2,000 nodes", wide)):
        for what, times in zip(("", ", CPU time"), zip(*changes, strict=True), strict=True):
            print(f"{words + what:44} p50 {statistics.median(times):.2f} s, at most {max(times):.2f} s")
    met = mib <= MOST_MIB and all(took_s <= MOST_S for took_s, _ in (*narrow, *wide))
    print(f"promised: ≤ {MOST_MIB:.0f} MiB, ≤ {MOST_S:g} s: {'met' if met else 'MISSED'}")
    return met


async def _obey(store: MemoryStore, view: View) -> None:
    """Every agent reports that it has taken in what there is."""
    now = datetime.fromtimestamp(int(wall()), UTC)
    for n in range(NODES):
        node = await store.get("NodeQoS", "", _name(n))
        assert isinstance(node, NodeQoS)
        report = replace(node.status.node, document=view.documents.of(_name(n)).hash, heartbeat=now)
        await store.put(replace(node, status=replace(node.status, node=report)), part="status")


async def _change(store: MemoryStore, name: str, namespace: str) -> tuple[float, float]:
    """One more unit, and another shape: how long it took, and the CPU time."""
    policy = await store.get("MinimalReservationPolicy", namespace, name)
    assert isinstance(policy, MinimalReservationPolicy)
    least = replace(policy.spec.minimum, cpu=Quantity.parse("750m"))
    began, cpu = time.perf_counter(), time.process_time()
    put = await store.put(replace(policy, spec=replace(policy.spec, minimum=least, units=policy.spec.units + 1)))
    await _judged(store, name, namespace, put.metadata.generation)
    return time.perf_counter() - began, time.process_time() - cpu


async def _judged(store: MemoryStore, name: str, namespace: str, generation: int) -> None:
    while True:
        policy = await store.get("MinimalReservationPolicy", namespace, name)
        if isinstance(policy, MinimalReservationPolicy) and policy.status.admitted_generation == generation:
            return
        await asyncio.sleep(0.01)


def _pods() -> Iterator[dict[str, Any]]:
    for n in range(NODES * PODS):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{n % 400}-7d9f", "controller": True}
        resources = {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
        yield {
            "metadata": {
                "name": f"app-{n % 400}-7d9f-{n:06}",
                "namespace": f"team-{n % NAMESPACES}",
                "uid": str(uuid.UUID(int=n)),
                "resourceVersion": str(n),
                "creationTimestamp": "2024-01-01T00:00:00Z",
                "labels": {"app": f"app-{n % 400}", "pod-template-hash": "7d9f"},
                "ownerReferences": [owner | {"uid": str(uuid.UUID(int=n % 400))}],
            },
            "spec": {
                "nodeName": _name(n // PODS),
                "schedulerName": "default-scheduler",
                "priority": 0,
                "containers": [{"name": "main", "image": "registry/app:1", "resources": resources}],
            },
            "status": {"phase": "Running", "qosClass": "Burstable", "podIP": "10.0.0.1"},
        }


def _nodes() -> Iterator[dict[str, Any]]:
    has = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for n in range(NODES):
        labels = {"zone": f"z{n % 3}", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        yield {
            "metadata": {"name": _name(n), "uid": str(uuid.UUID(int=n)), "resourceVersion": str(n), "labels": labels},
            "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
        }


def _namespaces() -> Iterator[dict[str, Any]]:
    return ({"metadata": {"name": f"team-{n}", "uid": str(n), "resourceVersion": "1"}} for n in range(NAMESPACES))


def _printed(n: int) -> NodeQoS:
    capacity = {"cpu": Quantity.parse("32"), "memory": Quantity.parse("128Gi")}
    usage = {r: {p: Quantity.parse("12") for p in ("p50", "p95", "p98", "max")} for r in ("cpu", "memory")}
    report = NodeReport(armed=True, boot_id=str(uuid.UUID(int=n)), capacity=capacity, usage=usage, workloads=PODS)
    return NodeQoS(metadata=Meta(name=_name(n)), status=NodeQoSStatus(node=report))


def _policy(name: str, namespace: str, labels: dict[str, str], units: int) -> MinimalReservationPolicy:
    raw = {
        "apiVersion": "j10ce.io/v1alpha1",
        "kind": "MinimalReservationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "minimum": {"cpu": "500m", "memory": "1Gi"}, "units": units},
    }
    return convert(raw, MinimalReservationPolicy)


def _name(n: int) -> str:
    return f"node-{n:05}"


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    machine_facts()
    gc.set_threshold(*COLLECT)  # as the process does
    gc.freeze()
    return not asyncio.run(measure())


if __name__ == "__main__":
    sys.exit(main())
