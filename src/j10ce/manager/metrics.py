"""What the manager counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.responses import Response

BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
TOO_MANY: Final = 429


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        requests = Counter("j10ce_manager_requests", "Answered requests.", ("method", "code"), registry=registry)
        seconds = Histogram(
            "j10ce_manager_request_seconds",
            "From the first byte of a request to the last of its answer; watches left out.",
            ("method",),
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._limited = Counter("j10ce_manager_rate_limited", "Requests refused with 429.", registry=registry)
        store_seconds = Histogram(
            "j10ce_manager_store_seconds", "A call of the store.", ("operation",), buckets=BUCKETS_S, registry=registry
        )
        # Finding a series by its labels takes longer than counting in it; there are few.
        self._requests, self._seconds = cache(requests.labels), cache(seconds.labels)
        self._store_seconds = cache(store_seconds.labels)
        self._store_errors = Counter(
            "j10ce_manager_store_errors", "Calls that the store did not answer.", ("operation", "error"),
            registry=registry,
        )  # fmt: skip
        self._refused = Gauge(
            "j10ce_manager_store_refused", "1 for what the store does not let us do.", ("operation", "kind"),
            registry=registry,
        )  # fmt: skip
        self.leader = Gauge("j10ce_manager_leader", "1 on the manager that leads.", registry=registry)
        self.store_up = Gauge("j10ce_manager_store_up", "1 while the store answers.", registry=registry)
        self.audit_lost = Gauge(
            "j10ce_manager_audit_lost", "Lines that the audit log could not take.", registry=registry
        )
        self.watchers = Gauge("j10ce_manager_watchers", "Open watches.", registry=registry)

    def answered(self, method: str, code: int, took_s: float | None) -> None:
        """`took_s` is None for a watch: its length says nothing about our speed."""
        self._requests(method, code).inc()
        if code == TOO_MANY:
            self._limited.inc()
        if took_s is not None:
            self._seconds(method).observe(took_s)

    def store_answered(self, operation: str, took_s: float) -> None:
        self._store_seconds(operation).observe(took_s)

    def store_failed(self, operation: str, error: str) -> None:
        self._store_errors.labels(operation, error).inc()

    def store_refused(self, operation: str, kind: str, *, refused: bool) -> None:
        self._refused.labels(operation, kind).set(refused)

    def also(self, families: Callable[[], Iterable[GaugeMetricFamily]]) -> None:
        """Tell these, too, made when somebody asks."""
        self.registry.register(Made(families))

    def render(self) -> Response:
        return Response(generate_latest(self.registry), headers={"content-type": CONTENT_TYPE_LATEST})


class Made(Collector):
    def __init__(self, families: Callable[[], Iterable[GaugeMetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families()

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing yet: what there is to tell is known when somebody asks."""
        return ()
