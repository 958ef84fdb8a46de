"""What the scheduler counts, for Prometheus. Labels are bounded: results, queues, parts; there is none per pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

Attempt: TypeAlias = Literal["scheduled", "unschedulable", "error"]
STEP_BUCKETS_S: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
QUEUES: Final = ("active", "backoff", "unschedulable", "gated", "waiting")


class SchedulerMetrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._attempts = Counter(
            "j10ce_scheduler_attempts", "Pods that were tried, by what became of them.", ("result",),
            registry=self.registry,
        )  # fmt: skip
        self._evictions = Counter(
            "j10ce_scheduler_evictions", "Pods that were asked to go for others.", registry=self.registry
        )
        self._steps = Histogram(
            "j10ce_scheduler_decision_seconds", "CPU time of one decision.", buckets=STEP_BUCKETS_S,
            registry=self.registry,
        )  # fmt: skip
        self._pending = Gauge(
            "j10ce_scheduler_pending_pods", "Pods without a node, by queue.", ("queue",), registry=self.registry
        )
        self._leader = Gauge("j10ce_scheduler_leader", "1 on the replica that decides.", registry=self.registry)
        for result in ("scheduled", "unschedulable", "error"):
            self._attempts.labels(result)

    def attempt(self, result: Attempt) -> None:
        self._attempts.labels(result).inc()

    def evicted(self) -> None:
        self._evictions.inc()

    def decided(self, count: int, took_s: float) -> None:
        for _ in range(count):
            self._steps.observe(took_s / count)

    def watch(self, pending: Callable[[], Mapping[str, int]], leads: Callable[[], bool]) -> None:
        self._leader.set_function(lambda: float(leads()))
        for queue in QUEUES:
            self._pending.labels(queue).set_function(partial(_of, pending, queue))

    def render(self) -> bytes:
        return generate_latest(self.registry)


def _of(pending: Callable[[], Mapping[str, int]], queue: str) -> float:
    return float(pending().get(queue, 0))
