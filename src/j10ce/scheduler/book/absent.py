"""Pods of nodes that nobody has heard of.

Whoever may create a pod may name any node in it, also one that never comes: so such a node gets no row, and the pod
is kept aside until the node is there, or the pod gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from j10ce.scheduler.book.facts import PodFacts


class Absent:
    def __init__(self) -> None:
        self._node: dict[str, str] = {}  # by uid
        self._of: dict[str, dict[str, PodFacts]] = {}  # by node and uid

    def put(self, pod: PodFacts) -> None:
        self.drop(pod.uid)
        self._node[pod.uid] = pod.node
        self._of.setdefault(pod.node, {})[pod.uid] = pod

    def drop(self, uid: str) -> None:
        node = self._node.pop(uid, None)
        if node is not None:
            del self._of[node][uid]
            if not self._of[node]:
                del self._of[node]

    def taken(self, node: str) -> Iterable[PodFacts]:
        """Its pods, which are kept here no more."""
        pods = tuple(self._of.get(node, {}).values())
        for pod in pods:
            self.drop(pod.uid)
        return pods
