"""The text of our counters and gauges is what Prometheus' own library writes, and what its parser reads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from j10ce.agent.report.exposition import MetricFamily, exposed

VALUES = st.dictionaries(st.tuples(st.text(max_size=8), st.text(max_size=8)), st.floats(0, 9e9), max_size=4)


class Theirs(Collector):
    def __init__(self, rows: dict[tuple[str, str], float], text: str) -> None:
        self._rows, self._text = rows, text

    def collect(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        gauge = GaugeMetricFamily("g", self._text, labels=("b", "a"))
        counter = CounterMetricFamily("c", self._text, value=7.0)
        for values, value in self._rows.items():
            gauge.add_metric(values, value)
        return [gauge, counter]


@given(VALUES, st.text(max_size=20))
def test_the_same_numbers_have_the_same_text(rows: dict[tuple[str, str], float], text: str) -> None:
    gauge, counter = MetricFamily("gauge", "g", text, ("b", "a")), MetricFamily("counter", "c", text)
    counter.inc(7.0)
    for values, value in rows.items():
        gauge.labels(*values).set(value)
    registry = CollectorRegistry()
    registry.register(Theirs(rows, text))
    assert exposed([gauge, counter]) == generate_latest(registry)


@pytest.mark.parametrize("value", [0.0, -1.5, 1e21, math.inf, -math.inf])
def test_any_number_is_read_as_it_was(value: float) -> None:
    gauge = MetricFamily("gauge", "g", "a number")
    gauge.set(value)
    (family,) = text_string_to_metric_families(exposed([gauge]).decode())
    assert [(s.name, s.value) for s in family.samples] == [("g", value)]


def test_what_is_no_number_is_said_to_be_none() -> None:
    gauge = MetricFamily("gauge", "g", "a number")
    gauge.set(math.nan)
    assert exposed([gauge]).endswith(b"g NaN\n")


def test_labels_are_all_there_or_it_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="has the labels a, b"):
        MetricFamily("counter", "c", "x", ("a", "b")).labels("one")
