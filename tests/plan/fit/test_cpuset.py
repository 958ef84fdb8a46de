"""Sets of CPUs nest, and whoever has fewer for the sake of a group above hears why that has no more."""

from __future__ import annotations

from j10ce.model.knob import Setting, group
from tests.plan.world import CRUNCH, WEB, World, wish


def test_a_set_that_follows_a_group_above_says_who_confined_that_group() -> None:
    tier = wish(group("j10ce_besteffort"), "cpuset.cpus", frozenset({0}), owner="cpu-suppress")
    verdict = World("v1").settle(tier).verdicts[Setting(CRUNCH.target, "cpuset.cpus")]
    assert verdict.clamps[-1] == f"set to 0: within its parent, cpu-suppress: {tier.reason}"


def test_a_set_of_ours_from_a_narrower_time_stays_as_its_parents_is_now() -> None:
    """It was made when its parent had one CPU: going back to that and following the parent took turns for ever."""
    world, above = World("v1"), group("j10ce/sensitive")
    world.kernel[world.kernel.places[WEB.target].path].values["cpuset.cpus"] = frozenset({0})
    wide = wish(above, "cpuset.cpus", frozenset({0, 1, 2, 3}), owner="floors")
    world.settle(wide)
    assert world.journal[Setting(WEB.target, "cpuset.cpus")] == frozenset({0})
    assert world.plan(wide).changes == ()
    assert world.kernel.settings()[Setting(WEB.target, "cpuset.cpus")] == frozenset({0, 1, 2, 3})
