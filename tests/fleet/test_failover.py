"""The leader is taken away again and again: another leads, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
from itertools import cycle, islice
from pathlib import Path

import pytest

from j10ce.store.etcd.elector import TTL_S
from tests.fleet.failover import Measured, under_load

HOW = ("kill", "hang", "kill, etcd too")
ROUNDS = int(50 * float(os.environ.get("J10CE_SOAK", "1")))


def summary(rounds: list[Measured], writes: int) -> str:
    written, led = max(r.written_s for r in rounds), max(r.led_s for r in rounds)
    return (
        f"{len(rounds)} fail-overs, {writes} acknowledged writes, none lost; "
        f"written again after at most {written:.2f} s, led again after at most {led:.2f} s, "
        f"{led / TTL_S:.2f} lease times"
    )


def run(folder: Path, count: int) -> str:
    with under_load(folder) as control:
        rounds = [control.fail_over(how) for how in islice(cycle(HOW), count)]
        return summary(rounds, control.settle())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_fail_overs_lose_nothing(tmp_path: Path) -> None:
    print(run(tmp_path, len(HOW)))


@pytest.mark.soak
@pytest.mark.timeout(ROUNDS * 60 + 120)
def test_fifty_fail_overs_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = run(tmp_path, ROUNDS)
    with capsys.disabled():
        print(f"\n{line}")
