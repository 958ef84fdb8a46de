"""No caller gets more than its share in any span of time, nobody else's, and the tables stay small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.http.status import Refusal
from j10ce.manager.fairness import rate_limits
from j10ce.manager.fairness.rate_limits import Buckets, Limits, network
from j10ce.manager.identity import Caller, Role

STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3, allow_nan=False)), max_size=200)
EDITOR, ADMIN = Caller("e", Role.EDITOR), Caller("a", Role.ADMIN)


class Hand:
    """A clock that goes when a test wants it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@given(steps=STEPS, rate=st.floats(0.1, 50), burst=st.integers(1, 20))
def test_no_span_of_time_grants_more_than_its_rate_and_one_burst(
    steps: list[tuple[str, float]], rate: float, burst: int
) -> None:
    clock = Hand()
    buckets = Buckets(rate, burst, clock)
    granted: dict[str, list[float]] = {}
    for key, pause in steps:
        clock.now += pause
        if not buckets.take(key):
            granted.setdefault(key, []).append(clock.now)
    for times in granted.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= burst + rate * (times[last] - times[first]) + 1e-6


@given(steps=STEPS, rate=st.floats(0.1, 50), burst=st.integers(1, 20))
def test_whoever_waits_as_long_as_asked_gets_in(steps: list[tuple[str, float]], rate: float, burst: int) -> None:
    clock = Hand()
    buckets = Buckets(rate, burst, clock)
    for key, pause in steps:
        clock.now += pause
        if wait_s := buckets.take(key):
            clock.now += wait_s + 1e-6
            assert buckets.take(key) == 0.0


@given(steps=STEPS)
def test_one_caller_costs_another_nothing(steps: list[tuple[str, float]]) -> None:
    clock = Hand()
    crowded, alone = Buckets(5, 5, clock), Buckets(5, 5, clock)
    for key, pause in steps:
        clock.now += pause
        took = crowded.take(key)
        assert key != "a" or took == alone.take(key)


def test_memory_is_bounded_and_the_busy_are_remembered() -> None:
    clock = Hand()
    buckets = Buckets(1, 2, clock, most=100)
    for n in range(10_000):
        buckets.take("busy")
        buckets.take(f"other-{n}")
    assert len(buckets) <= 100
    assert buckets.take("busy") > 0


def test_a_caller_is_slowed_down_and_an_administrator_is_not() -> None:
    made = Limits(lambda: 0.0)
    for _ in range(int(rate_limits.PEOPLE.requests_burst)):
        made.request(EDITOR)
    with pytest.raises(Refusal, match="200 times a second") as refused:
        made.request(EDITOR)
    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    assert int((refused.value.headers or {})["retry-after"]) >= 1
    made.request(Caller("other", Role.EDITOR))
    for _ in range(10 * int(rate_limits.PEOPLE.requests_burst)):
        made.request(ADMIN)


def test_watches_are_counted_while_they_are_open() -> None:
    made = Limits(lambda: 0.0)
    for _ in range(rate_limits.PEOPLE.watches):
        made.open_watch(EDITOR)
    with pytest.raises(Refusal, match="100 watches"), made.watch(EDITOR):
        pass
    made.close_watch(EDITOR)
    with made.watch(EDITOR):
        pass
    for _ in range(10 * rate_limits.PEOPLE.watches):
        made.open_watch(ADMIN)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("", "", True),
        ("no address", "another", False),
    ],
)
def test_a_stranger_is_an_address_or_the_net_of_one_host(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) == same
