"""Sets of CPUs nest, and whoever has fewer for the sake of a group above is told why that has no more."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.model.knob import Setting, Support, group
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build


def test_a_set_that_follows_a_group_above_says_who_confined_that_group() -> None:
    job = build.workload("job")
    entitled = build.entitlement(job, tier="besteffort")
    above = group(job.handle.path.rpartition("/")[0])
    here, up = Setting(job.target, "cpuset.cpus"), Setting(above, "cpuset.cpus")
    wishes = [
        Proposal(up, Bound.WANT, frozenset({0}), "cpu-suppress", Rank.POLICY, "the others need the rest"),
        Proposal(here, Bound.WANT, frozenset(), "cpu-suppress", Rank.ADVICE, "as its group"),
    ]
    snap = build.snapshot(entitled, workloads=[job], on=build.node(cpus=2))
    snap = replace(snap, support={**snap.support, "cpuset.cpus": Support(True, via="cgroup1")})
    verdict = arbitrate(wishes, snap, (), lambda _, v: v).verdicts[here]
    assert verdict.clamps[-1] == "set to 0: within its parent, cpu-suppress: the others need the rest"
