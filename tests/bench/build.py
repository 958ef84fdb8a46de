"""Runs made up for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from j10ce.bench.scenarios import ARMS, SCENARIOS
from j10ce.bench.taken import Missing, Taken
from j10ce.bench.verdict import Proof, judge


def taken(*p99s_ms: float, others: float = 0.0, busy: float = 1.0) -> list[Taken]:
    """A round for each, of four seconds of a hundred requests: two of a second take so long, the others half."""
    return [
        Taken(seconds=[[p99 / 2e3] * 98 + [p99 / 1e3] * 2 for _ in range(4)], busy=busy, others=others, filled=0.97)
        for p99 in p99s_ms
    ]


def proof(arms: Mapping[str, Sequence[Taken]], missing: Sequence[Missing] = ()) -> Proof:
    lines, noise = judge(ARMS, arms)
    scenario = SCENARIOS["cpu"]
    return Proof(
        scenario="cpu", asks=scenario.asks, machine="2 CPUs (made up)", rounds=3, load=scenario.load(2, 4.0),
        lines=lines, missing=missing, noise=noise,
    )  # fmt: skip


def usual() -> Proof:
    arms = {
        "alone": taken(1.8, 1.9, 1.8),
        "no QoS": taken(1500.0, 1600.0, 1400.0),
        "ls": taken(1.9, 2.0, 1.9),
        "ceiling": taken(0.8, 0.8, 0.8),
    }
    return proof(arms, [Missing("realtime", "this version has no profile realtime")])
