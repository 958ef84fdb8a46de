"""Steps of the core beside everything else that a process does."""

from __future__ import annotations

from j10ce.scheduler.process.deciding import AT_ONCE, LONG_S, pace


def test_pods_that_are_hard_to_place_are_decided_a_few_at_a_time_and_others_many() -> None:
    """A lease has to be renewed meanwhile: 32 pods that each look at thousands of nodes took 12 s in one go."""
    most, steps = AT_ONCE, 0
    while most > 1:
        most, steps = pace(most, took_s=0.4 * most), steps + 1
        assert steps < 10
    assert pace(1, took_s=0.4) == 1
    for _ in range(10):
        most = pace(most, took_s=0.0001 * most)
    assert most == AT_ONCE
    assert pace(8, took_s=LONG_S / 2) == 8
