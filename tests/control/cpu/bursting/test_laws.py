"""The laws of bursts: who may, what a raised quota costs, and what the next one is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.control.allowance import BurstAllowed, allowed
from j10ce.control.cpu.bursting.pool import pool_use, state
from j10ce.control.cpu.bursting.quota import Quota, QuotaNeeds, next_quota
from j10ce.control.cpu.bursting.tokens import Bucket, after, first, resized
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import NODE
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.workload import Overrides
from j10ce.testing import build

HALF = Quantity(50, percent=True)


@pytest.mark.parametrize(
    ("tier", "node", "own", "want"),
    [
        pytest.param("sensitive", {}, {}, (HALF, 1.0), id="nothing said: as the profile has it"),
        pytest.param("sensitive", {"policy": "auto"}, {}, (Quantity(1000, percent=True), 3.0), id="both, by default"),
        pytest.param("standard", {"policy": "none"}, {}, (Quantity(0, percent=True), 1.0), id="none is none"),
        pytest.param(
            "sensitive", {"policy": "quota", "quota_percent": 200}, {}, (Quantity(0, percent=True), 2.0), id="q"
        ),
        pytest.param(
            "sensitive", {"policy": "auto"}, {"policy": "none"}, (Quantity(0, percent=True), 1.0), id="its own"
        ),
        pytest.param("sensitive", {}, {"static_percent": 30}, (Quantity(30, percent=True), 1.0), id="its own percent"),
        pytest.param("reserved", {"policy": "auto"}, {}, (HALF, 1.0), id="who has CPUs of its own keeps its profile's"),
        pytest.param("besteffort", {"policy": "auto"}, {}, (HALF, 1.0), id="best effort, too"),
    ],
)
def test_who_may_burst(
    tier: str, node: dict[str, object], own: dict[str, object], want: tuple[Quantity, float]
) -> None:
    w = replace(build.workload("w", cpu_limit="1"), overrides=Overrides(burst=BurstSection(**own)))  # type: ignore[arg-type]
    e = build.entitlement(w, tier=tier, cpu=CpuSection(burst=HALF))
    got = allowed(e, w, BurstSection(**node))  # type: ignore[arg-type]
    assert (got.saved, got.multiple) == want


def test_what_nobody_says_is_the_default() -> None:
    w = build.workload("w")
    said = BurstSection(policy="quota", period=Duration(60), share_pool_percent=70)
    assert allowed(build.entitlement(w), w, said)[1:] == (3.0, 60.0, 0.7)
    assert allowed(build.entitlement(w), None, BurstSection()) == BurstAllowed(UNSET)


def test_the_pool_is_without_those_who_have_cpus_and_best_effort() -> None:
    lse, job, web = build.workload("lse", cpu="2"), build.workload("job"), build.workload("web")
    snap = build.snapshot(
        build.entitlement(lse, tier="exclusive"),
        build.entitlement(job, tier="besteffort"),
        build.entitlement(web),
        workloads=[lse, job, web],
        on=build.node(10),
        readings={(NODE, "cpu.usage"): 6.0, (lse.target, "cpu.usage"): 1.0, (job.target, "cpu.usage"): 3.0},
    )
    assert pool_use(snap) == pytest.approx(2.0 / 8.0)
    assert pool_use(build.snapshot()) is None


@pytest.mark.parametrize(
    ("use", "want"), [(None, "unknown"), (0.44, "idle"), (0.45, "cooling"), (0.5, "overload"), (math.inf, "overload")]
)
def test_states_of_the_pool(use: float | None, want: str) -> None:
    assert state(use, 0.5) == want


@pytest.mark.parametrize(
    ("held", "throttled", "pool", "allows", "want"),
    [
        pytest.param(100, 0.3, "idle", True, 300, id="rises while it throttles"),
        pytest.param(200, 0.3, "idle", True, 500, id="up to its most"),
        pytest.param(500, 0.3, "idle", True, 500, id="and no further"),
        pytest.param(200, 0.0, "idle", True, 200, id="stays while it does not"),
        pytest.param(100, 0.3, "cooling", True, 100, id="not while the pool is nearly busy"),
        pytest.param(200, 0.3, "unknown", True, 200, id="nor while nobody knows"),
        pytest.param(300, 0.3, "overload", True, 100, id="falls to the limit at once"),
        pytest.param(300, 0.3, "idle", False, 100, id="likewise without tokens"),
        pytest.param(50, 0.0, "overload", True, 100, id="never below the limit"),
        pytest.param(900, 0.0, "idle", True, 500, id="never above what is allowed"),
    ],
)
def test_the_next_quota(held: float, throttled: float, pool: str, allows: bool, want: float) -> None:
    needs = QuotaNeeds(100, 500, throttled, allows)
    assert next_quota(Quota(held), needs, pool, 1000.0).us == want  # type: ignore[arg-type]


def test_a_quota_that_fell_rests_before_it_rises() -> None:
    needs, held, seen = QuotaNeeds(100, 300, 0.5, True), Quota(300.0), []
    for n, pool in enumerate(["overload", *["idle"] * 12]):
        held = next_quota(held, needs, pool, float(n))  # type: ignore[arg-type]
        seen.append(held.us)
    assert seen == [100.0] * 10 + [300.0] * 3


@given(
    held=st.floats(1, 1000),
    steps=st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["idle", "cooling", "overload", "unknown"]), st.booleans()),
        max_size=60,
    ),
)
def test_a_quota_stays_between_limit_and_most(held: float, steps: list[tuple[float, str, bool]]) -> None:
    quota = Quota(held)
    for n, (throttled, pool, allows) in enumerate(steps):
        quota = next_quota(quota, QuotaNeeds(100, 300, throttled, allows), pool, float(n))  # type: ignore[arg-type]
        assert 100 <= quota.us <= 300
    calm = QuotaNeeds(100, 300, 0.0, True)
    settled = next_quota(quota, calm, "idle", 1000.0)
    assert next_quota(settled, calm, "idle", 1001.0) == settled


def test_tokens_are_spent_beyond_the_limit_and_earned_well_below_it() -> None:
    bucket = Bucket(100.0, 10.0)
    assert after(bucket, 3.0, 2.0).tokens == 6.0
    assert after(bucket, 0.8, 10.0).tokens == 10.0
    assert after(bucket, 0.5, 10.0).tokens == 15.0
    spent = after(bucket, 3.0, 10.0)
    assert (spent.tokens, spent.allows) == (-10.0, False)
    assert not after(spent, 0.0, 15.0).allows, "a tenth of the capacity first"
    assert after(spent, 0.0, 20.0).allows


def test_buckets_begin_with_different_parts_and_without_an_end_they_never_run_dry() -> None:
    filled = {first(f"workload/default/w{n}", 60.0, 3.0).tokens / 120 for n in range(50)}
    assert len(filled) > 20
    assert all(0 < part <= 0.5 for part in filled)
    assert after(first("w", math.inf, 3.0), 3.0, 1e9).allows
    assert not first("w", 0.0, 3.0).allows, "a period of nothing allows nothing"


@given(tokens=st.floats(-500, 500), period=st.floats(0, 100), multiple=st.floats(1, 10))
def test_a_bucket_of_another_size_holds_no_more_than_that(tokens: float, period: float, multiple: float) -> None:
    bucket = resized(Bucket(500.0, tokens), period, multiple)
    assert abs(bucket.tokens) <= bucket.capacity == period * (multiple - 1)
