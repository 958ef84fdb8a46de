"""What kube-scheduler and API servers ask of the manager, and what it answers; for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from j10ce.manager.telemetry.metrics import BUCKETS_S, OTHER
from j10ce.model.catalogue import KINDS
from j10ce.scheduler.extender.extender import Filtered

JUDGED: Final = frozenset({*KINDS, "Pod"})
Verdict: TypeAlias = Literal["admitted", "changed", "refused", "skipped"]


class DoorMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "j10ce_manager_door_requests", "Answered calls of Kubernetes.", ("door", "verb", "code"), registry=registry
        )
        seconds = Histogram(
            "j10ce_manager_door_seconds",
            "From the first byte of a call to the last of its answer, waiting for bindings included.",
            ("door", "verb"),
            buckets=BUCKETS_S,
            registry=registry,
        )
        pods = Counter(
            "j10ce_manager_extender_pods", "Pods that were filtered, by what became of them.", ("verdict",),
            registry=registry,
        )  # fmt: skip
        nodes = Counter(
            "j10ce_manager_extender_nodes_refused", "Nodes that pods were refused, by why.", ("reason",),
            registry=registry,
        )  # fmt: skip
        reviews = Counter(
            "j10ce_manager_webhook_reviews", "Objects that were judged.", ("webhook", "kind", "verdict"),
            registry=registry,
        )  # fmt: skip
        self._offers = Gauge(
            "j10ce_manager_extender_offers", "Pods that are charged on the nodes they were offered.", registry=registry
        )
        self._requests, self._seconds = cache(requests.labels), cache(seconds.labels)
        self._pods, self._nodes, self._reviews = cache(pods.labels), cache(nodes.labels), cache(reviews.labels)

    def answered(self, door: str, verb: str, code: int, took_s: float) -> None:
        self._requests(door, verb, code).inc()
        self._seconds(door, verb).observe(took_s)

    def offers(self, count: Callable[[], int]) -> None:
        self._offers.set_function(count)

    def filtered(self, answer: Filtered) -> None:
        self._pods("seated" if answer.seated else "offered" if answer.fit else "refused").inc()
        if answer.failed:
            self._nodes("elsewhere" if answer.seated else "reserved").inc(len(answer.failed))
        if answer.hopeless:
            self._nodes("hopeless").inc(len(answer.hopeless))

    def malformed(self) -> None:
        """A pod that could not be filtered, as the call made no sense."""
        self._pods("malformed").inc()

    def reviewed(self, webhook: str, kind: str, verdict: Verdict) -> None:
        self._reviews(webhook, kind if kind in JUDGED else OTHER, verdict).inc()
