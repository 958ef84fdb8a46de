"""What the manager counts, for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from starlette.responses import Response

from j10ce.http.status import TOO_MANY

METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "gRPC"})
OTHER: Final = "other"  # whatever a stranger may write must not become a series of its own
BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        requests = Counter("j10ce_manager_requests", "Answered requests.", ("method", "code"), registry=registry)
        self._seconds = Durations(
            "j10ce_manager_request_seconds",
            "From the first byte of a request to the last of its answer; watches left out.",
            "method",
            registry,
        )
        self._limited = Counter("j10ce_manager_rate_limited", "Requests refused with 429.", registry=registry)
        self._store_seconds = Durations("j10ce_manager_store_seconds", "A call of the store.", "operation", registry)
        # Finding a series by its labels takes longer than counting in it; there are few.
        self._requests = cache(requests.labels)
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
        method = method if method in METHODS else OTHER
        self._requests(method, code).inc()
        if code == TOO_MANY:
            self._limited.inc()
        if took_s is not None:
            self._seconds.observe(method, took_s)

    def store_answered(self, operation: str, took_s: float) -> None:
        self._store_seconds.observe(operation, took_s)

    def store_failed(self, operation: str, error: str) -> None:
        self._store_errors.labels(operation, error).inc()

    def store_refused(self, operation: str, kind: str, *, refused: bool) -> None:
        self._refused.labels(operation, kind).set(refused)

    def also(self, families: Callable[[], Iterable[GaugeMetricFamily]]) -> None:
        """Tell these, too, made when somebody asks."""
        self.registry.register(Made(families))

    def render(self) -> Response:
        return Response(generate_latest(self.registry), headers={"content-type": CONTENT_TYPE_LATEST})


class Durations(Collector):
    """A histogram by one label, for one thread: the library's own locks twice and walks the buckets, at every call."""

    def __init__(self, name: str, about: str, label: str, registry: CollectorRegistry) -> None:
        self._name, self._about, self._label = name, about, label
        self._counts: dict[str, list[int]] = {}  # by value of the label, per bucket; the last is for longer ones
        self._sums: dict[str, float] = {}
        registry.register(self)

    def observe(self, value: str, took_s: float) -> None:
        if value not in self._counts:
            self._counts[value], self._sums[value] = [0] * (len(BUCKETS_S) + 1), 0.0
        self._counts[value][bisect_left(BUCKETS_S, took_s)] += 1
        self._sums[value] += took_s

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._about, labels=(self._label,))
        for value, counts in self._counts.items():
            bounds = (*map(floatToGoString, BUCKETS_S), "+Inf")
            family.add_metric((value,), list(zip(bounds, accumulate(counts), strict=True)), self._sums[value])
        yield family


class Made(Collector):
    def __init__(self, families: Callable[[], Iterable[GaugeMetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families()

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing yet: what there is to tell is known when somebody asks."""
        return ()
