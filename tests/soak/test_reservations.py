"""A million things that may happen to a fleet, and after each of them every promise is looked at."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.soak.driver import Driver

OPERATIONS = int(os.environ.get("J10CE_SOAK", "10")) * 100_000
HISTORY = 1_000  # operations of one fleet, before another begins
TELL = 50_000

pytestmark = [pytest.mark.soak, pytest.mark.timeout(6 * 3600)]


def test_no_operation_oversells_or_loses_a_unit(capfd: pytest.CaptureFixture[str]) -> None:
    done: Counter[str] = Counter()
    refused = 0
    for seed in range(-(-OPERATIONS // HISTORY)):
        driver = Driver(seed, limit_percent=100 if seed % 3 else 40)
        for step in range(HISTORY):
            try:
                driver.step()
            except AssertionError as e:
                e.add_note(f"seed {seed}, step {step}")
                raise
        done += driver.done
        refused += len(driver.world.refusals)
        if not done.total() % TELL:
            with capfd.disabled():
                print(f"reservations: {done.total()} operations, {refused} refusals", flush=True)
    assert done.total() >= OPERATIONS
    with capfd.disabled():
        print(f"reservations: {done.total()} operations, none oversold, no unit lost; {dict(done.most_common())}")
