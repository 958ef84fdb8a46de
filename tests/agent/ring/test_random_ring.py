"""The whole ring at random: it settles, gives everything back, sells no memory twice, and touches nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent.chaos import run

SCALE = int(os.environ.get("J10CE_SOAK", "1"))


@pytest.mark.parametrize("harsh", [False, True], ids=["everyday", "with faults and kills"])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_ring_settles_and_gives_everything_back(tmp_path: Path, first: int, harsh: bool) -> None:
    for seed in range(first, first + 10):
        run(tmp_path / str(seed), seed, 25, harsh=harsh)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("harsh", [False, True], ids=["everyday", "with faults and kills"])
def test_the_ring_settles_and_gives_everything_back_a_thousand_times(tmp_path: Path, harsh: bool) -> None:
    for seed in range(1000, 1000 + 1000 * SCALE):
        run(tmp_path / str(seed), seed, 60, harsh=harsh)
