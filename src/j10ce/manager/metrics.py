"""What the manager counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "j10ce_manager_requests", "Answered requests.", ("method", "code"), registry=self._registry
        )
        self._seconds = Histogram(
            "j10ce_manager_request_seconds",
            "From the first byte of a request to the last of its answer; watches left out.",
            ("method",),
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self.audit_lost = Gauge(
            "j10ce_manager_audit_lost", "Lines that the audit log could not take.", registry=self._registry
        )
        self.watchers = Gauge("j10ce_manager_watchers", "Open watches.", registry=self._registry)

    def answered(self, method: str, code: int, took_s: float | None) -> None:
        """`took_s` is None for a watch: its length says nothing about our speed."""
        self._requests.labels(method, str(code)).inc()
        if took_s is not None:
            self._seconds.labels(method).observe(took_s)

    def render(self) -> Response:
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})
