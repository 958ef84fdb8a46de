"""The nodes, owners and pods of an API server, for a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from j10ce.cli.client import Client
from j10ce.errors import Finding, Invalid
from j10ce.model.kube.native import decode_native
from j10ce.model.kube.surroundings import PodOwner, WideNode
from j10ce.scheduler.book.facts import NodeFacts
from j10ce.scheduler.reading.others import node_facts
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader
from j10ce.sim.cluster.given.live import LiveCluster, live_cluster

PAGE: Final = "500"
OWNERS: Final = {
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Job": "/apis/batch/v1/jobs",
}


def observed(api: Client, horizon_s: float) -> LiveCluster:
    """Raises Invalid for a cluster without a node."""
    owners = Owners()
    for kind, path in OWNERS.items():
        for item in _listed(api, path):
            owners.put(kind, decode_native(msgspec.json.encode(item), PodOwner))
    reader = PodReader(owners.top)
    objects = (decode_native(msgspec.json.encode(item), WideNode) for item in _listed(api, "/api/v1/nodes"))
    nodes: list[NodeFacts] = [node_facts(node) for node in objects]
    pods = [reader.read(msgspec.json.encode(item)) for item in _listed(api, "/api/v1/pods")]
    if not nodes:
        raise Invalid([Finding("--live", api.where, "has no node", "name a cluster with nodes")], "option")
    return live_cluster(nodes, (pod for pod in pods if pod is not None), horizon_s)


def _listed(api: Client, path: str) -> Iterator[dict[str, Any]]:
    more = ""
    while True:
        page = api.get(path, limit=PAGE, **({"continue": more} if more else {}))
        yield from page.get("items") or ()
        more = page.get("metadata", {}).get("continue", "")
        if not more:
            return
