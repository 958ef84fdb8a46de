"""As much of an API server as a scheduler writes to: it binds pods once, and says no on demand."""

from __future__ import annotations

from typing import Any

import msgspec

from j10ce.errors import Conflict, Later, NotFound, QosError, Unsure
from j10ce.scheduler.book.facts import PodFacts


class FakeApi:
    """`pods`: node by path; `refuse`: errors by path, each raised once; `lost`: paths whose answers are lost."""

    namespace = "j10ce-system"

    def __init__(self, *pods: PodFacts) -> None:
        self.pods: dict[str, tuple[str, str]] = {path(pod): (pod.uid, pod.node) for pod in pods}
        self.refuse: dict[str, QosError] = {}
        self.lost: set[str] = set()
        self.evicted: list[str] = []
        self.patches: list[tuple[str, Any]] = []
        self.objects: dict[str, Any] = {}

    async def get(self, where: str) -> bytes:
        if where in self.objects:
            return msgspec.json.encode(self.objects[where])
        if where not in self.pods:
            raise NotFound(where)
        uid, node = self.pods[where]
        return msgspec.json.encode({"metadata": {"uid": uid}, "spec": {"nodeName": node}})

    async def create(self, where: str, body: Any) -> bytes:
        self._refused(where)
        if not where.endswith("/binding"):
            self.objects[f"{where}/{body['metadata']['name']}"] = body
            return b"{}"
        pod = where.removesuffix("/binding")
        uid, node = self.pods[pod]
        if node or uid != body["metadata"]["uid"]:
            raise Conflict(f"{pod} is assigned to {node}")
        self.pods[pod] = (uid, body["target"]["name"])
        if where in self.lost:
            raise Unsure(f"{where}: no answer")
        return b"{}"

    async def patch(self, where: str, body: Any, how: str) -> bytes:
        self._refused(where)
        if "/pods/" not in where and where not in self.objects:
            raise NotFound(where)
        self.patches.append((where, body))
        self.objects.setdefault(where, {}).update(body)
        return b"{}"

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        self._refused(f"evict {name}")
        self.evicted.append(uid)

    def _refused(self, what: str) -> None:
        if (error := self.refuse.pop(what, None)) is not None:
            raise error


def path(pod: PodFacts) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def budget() -> Later:
    return Later("Cannot evict pod as it would violate the pod's disruption budget.", 1.0)
