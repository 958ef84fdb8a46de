"""Random lives of a whole control plane: policies, nodes, lies, clocks, leaders, rollouts, placements."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.manager.keepers.anything import live

SOAK = int(os.environ.get("J10CE_SOAK", "10")) * 20


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_happens_every_promise_is_kept_and_reported(seed: int) -> None:
    await live(seed, steps=50)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
async def test_many_lives_of_a_control_plane() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1000, 1000 + SOAK):
        seen += (await live(seed, steps=150)).seen
    for what in ("Granted", "NoRoom", "Expired", "short", "dead", "place yes", "place no", "rollout Complete"):
        assert seen[what], f"no life has seen {what}: it proves nothing about that"
