"""Whatever happens, in whatever order: no node is overfull, no pod is bound twice, none is forgotten."""

from __future__ import annotations

import os

import pytest

from tests.scheduler.cycle.world import World

SOAK = float(os.environ.get("J10CE_SOAK", "10")) * 100_000
A_WORLD = 500  # events


@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_events(seed: int) -> None:
    one_world(seed)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_million_events() -> None:
    for seed in range(int(SOAK) // A_WORLD):
        one_world(seed)


def one_world(seed: int) -> None:
    world = World(seed, moody=seed % 2 == 1, reserving=seed % 4 > 1)
    try:
        for _ in range(A_WORLD):
            world.anything()
        world.settle()
    except AssertionError as e:
        raise AssertionError(f"seed {seed}: {e}") from e
    assert world.done["bound"] > 20
