"""Series: exact while samples are kept, on the safe side after that, small always."""

from __future__ import annotations

import gc
import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model import knob
from j10ce.model.snapshot import Window
from j10ce.observe.ring import FINE
from j10ce.observe.sensors.cgroup import SLOW_EVERY
from j10ce.observe.series import SeriesBook

WEB = knob.workload("default", "web")
FRACTIONS = st.floats(0, 1)
VALUES = st.floats(0, 2.0**40, width=32)  # as coarse slots hold them, so that rounding does not blur the comparison


def recorded(values: list[float], period_s: float = 1.0, start: float = 1000.0) -> SeriesBook:
    book = SeriesBook()
    for n, value in enumerate(values):
        book.add(start + n * period_s, WEB, "cpu.usage", value)
    return book


def window(book: SeriesBook, now: float, span_s: float) -> Window:
    return book.at(now).window(WEB, "cpu.usage", span_s)


def exact(values: list[float], q: float) -> float:
    return sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]


@given(st.lists(VALUES, min_size=1, max_size=FINE), FRACTIONS)
def test_quantiles_are_exact_while_samples_are_kept(values: list[float], q: float) -> None:
    seen = window(recorded(values), 1000.0 + len(values), math.inf)
    assert seen.quantile(q) == exact(values, q)
    assert (seen.last(), seen.peak(), len(seen)) == (values[-1], max(values), len(values))
    assert seen.mean() == pytest.approx(sum(values) / len(values))


@given(st.lists(VALUES, min_size=FINE, max_size=590), FRACTIONS, st.sampled_from([0.3, 1.0, 2.5]))
def test_quantiles_over_slots_are_never_low_and_one_bin_high_at_most(
    values: list[float], q: float, period_s: float
) -> None:
    values = values[: int(590 / period_s)]
    seen = window(recorded(values, period_s), 1000.0 + len(values) * period_s, math.inf)
    estimate = seen.quantile(q)
    assert estimate is not None
    # A bin holds a quarter of its slot, rounded up: 3 of 10 samples.
    assert exact(values, q) <= estimate <= exact(values, min(1.0, q + 0.3))
    assert (seen.peak(), len(seen)) == (max(values), len(values))


def test_the_hour_is_kept_in_slots() -> None:
    values = [float(n % 97) for n in range(3600)]
    seen = window(recorded(values), 4600.0, 3600.0)
    assert len(seen) == pytest.approx(3600, rel=0.02)
    assert seen.peak() == 96.0
    assert seen.mean() == pytest.approx(sum(values) / 3600, rel=0.01)
    assert exact(values, 0.5) <= (seen.quantile(0.5) or 0) <= exact(values, 0.9)


def test_the_maximum_of_an_hour_survives_in_one_second() -> None:
    values = [1.0] * 3000
    values[600] = 7.0
    assert window(recorded(values), 4000.0, 3600.0).peak() == 7.0
    assert window(recorded(values), 4000.0, 60.0).peak() == 1.0


def test_a_window_ends_at_the_instant_it_was_asked_for() -> None:
    book = recorded([1.0, 2.0, 3.0])
    early = book.at(1001.0).window(WEB, "cpu.usage", 10.0)
    assert (early.last(), len(early)) == (2.0, 2)


def test_a_span_leaves_out_what_is_older() -> None:
    seen = window(recorded([9.0, 1.0, 2.0]), 1002.0, 1.0)
    assert (seen.peak(), len(seen)) == (2.0, 2)


def test_an_unknown_series_is_an_empty_window() -> None:
    seen = SeriesBook().at(1.0).window(WEB, "cpu.usage", 60.0)
    assert (len(seen), seen.last(), seen.mean(), seen.peak(), seen.quantile(0.5)) == (0, None, None, None, None)


def test_a_clock_that_stands_or_goes_back_adds_nothing() -> None:
    book = recorded([1.0, 2.0])
    book.add(1001.0, WEB, "cpu.usage", 50.0)
    book.add(900.0, WEB, "cpu.usage", 60.0)
    assert window(book, 2000.0, math.inf).peak() == 2.0


def test_a_pause_does_not_stretch_the_slots_around_it() -> None:
    book = recorded([1.0] * 200)
    for n in range(200):
        book.add(3000.0 + n, WEB, "cpu.usage", 2.0)
    assert window(book, 3200.0, 600.0).quantile(0.0) == 2.0
    assert window(book, 3200.0, math.inf).quantile(0.0) == 1.0


@given(st.lists(st.floats(0.01, 400), min_size=1, max_size=400))
def test_any_cadence_keeps_count_and_order(gaps: list[float]) -> None:
    book, now = SeriesBook(), 0.0
    for n, gap in enumerate(gaps):
        now += gap
        book.add(now, WEB, "cpu.usage", float(n))
    seen = window(book, now, 60.0)
    assert seen.last() == seen.peak() == float(len(gaps) - 1)
    assert 1 <= len(seen) <= len(gaps)


def test_what_is_gone_is_forgotten() -> None:
    book = recorded([1.0])
    book.keep_only([knob.NODE])
    assert len(window(book, 1001.0, 60.0)) == 0


def test_an_hour_of_two_hundred_workloads_fits_in_ten_mebibytes() -> None:
    tracemalloc.start()
    try:
        book = SeriesBook()
        for metric in range(7):  # of one workload
            for second in range(0, 3700, SLOW_EVERY if metric >= 3 else 1):
                book.add(float(second), WEB, f"m{metric}", float(second))
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used * 200 <= 10 * 2**20, f"{used * 200 / 2**20:.1f} MiB for 200 workloads"


@given(st.integers(1, 3 * FINE), st.integers(1, 200))
def test_single_samples_come_with_their_times(count: int, span_s: int) -> None:
    book = SeriesBook()
    for n in range(count):
        book.add(float(n), WEB, "cpu.usage", 10.0 * n)
    timed = book.at(float(count - 1)).timed(WEB, "cpu.usage", span_s)
    first = max(0, count - FINE, count - 1 - span_s)
    assert list(timed) == [(float(n), 10.0 * n) for n in range(first, count)]
    assert not book.at(0.0).timed(WEB, "memory.current", span_s)
