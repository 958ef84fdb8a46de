"""Sets of CPUs nest, and whoever has fewer for the sake of a group above hears why that has no more."""

from __future__ import annotations

from j10ce.model.knob import Setting, group
from tests.plan.world import CRUNCH, World, wish


def test_a_set_that_follows_a_group_above_says_who_confined_that_group() -> None:
    tier = wish(group("j10ce_besteffort"), "cpuset.cpus", frozenset({0}), owner="cpu-suppress")
    verdict = World("v1").settle(tier).verdicts[Setting(CRUNCH.target, "cpuset.cpus")]
    assert verdict.clamps[-1] == f"set to 0: within its parent, cpu-suppress: {tier.reason}"
