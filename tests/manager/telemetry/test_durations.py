"""Our histogram tells Prometheus what the library's own would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from j10ce.manager.telemetry.metrics import BUCKETS_S, Durations

SECONDS = st.floats(0, 10) | st.sampled_from(BUCKETS_S)


@given(st.lists(st.tuples(st.sampled_from(["GET", "PUT"]), SECONDS)))
def test_it_counts_as_the_librarys_histogram_does(seen: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    durations = Durations("took_seconds", "How long.", "method", ours)
    histogram = Histogram("took_seconds", "How long.", ("method",), buckets=BUCKETS_S, registry=theirs)
    for method, took_s in seen:
        durations.observe(method, took_s)
        histogram.labels(method).observe(took_s)
    assert buckets(ours) == buckets(theirs)


def buckets(registry: CollectorRegistry) -> set[str]:
    """Without the moment of creation, which only the library tells."""
    return {line for line in generate_latest(registry).decode().splitlines() if "_created" not in line}
