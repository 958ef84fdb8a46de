"""CPU burst: saved up, by quota, and its tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.classes import KoordClass
from tests.koordinator.theirs.laws.burst import (
    Bucket,
    NodeState,
    Policy,
    PoolUse,
    QuotaUse,
    clamped_burst,
    expired,
    may_burst,
    may_exceed,
    new_bucket,
    node_state,
    quota_burst,
    resized,
    spent,
    static_burst,
)


def test_only_ls_and_pods_without_a_class_burst() -> None:
    assert [koord.value for koord in KoordClass if may_burst(koord)] == ["", "LS"]


@pytest.mark.parametrize("policy", ["auto", "cpuBurstOnly"])
def test_time_is_saved_up_in_proportion_to_the_limit(policy: Policy) -> None:
    assert static_burst(policy, 200, {"a": 1500, "b": 0, "c": -1}) == ({"a": 300_000, "b": 0, "c": 0}, 300_000)


@pytest.mark.parametrize("policy", ["none", "cfsQuotaBurstOnly"])
def test_other_policies_save_nothing(policy: Policy) -> None:
    assert static_burst(policy, 200, {"a": 1500}) == ({"a": 0}, 0)


@pytest.mark.parametrize(("burst", "quota", "expected"), [(300, 200, 200), (100, 200, 100), (100, -1, 0)])
def test_a_burst_that_kernels_accept_is_at_most_the_quota(burst: int, quota: int, expected: int) -> None:
    assert clamped_burst(burst, quota) == expected


LSR, LS, BE = KoordClass.LSR, KoordClass.LS, KoordClass.BE


@pytest.mark.parametrize(
    ("used", "pods", "expected"),
    [
        pytest.param(3599, [], "idle", id="below"),
        pytest.param(3600, [], "cooling", id="nine tenths of the threshold"),
        pytest.param(4000, [], "overload", id="at it"),
        pytest.param(4000, [PoolUse(BE, 0, 500)], "idle", id="best effort does not count"),
        pytest.param(4000, [PoolUse(LS, 2000, 3000)], "overload", id="LS does"),
        pytest.param(4000, [PoolUse(LSR, 4000, 2300)], "idle", id="pinned CPUs and their use are apart"),
        pytest.param(4000, [PoolUse(LSR, 4000, 2000)], "overload", id="of a smaller pool"),
        pytest.param(0, [PoolUse(LSR, 8000, 0)], "overload", id="no pool at all"),
        pytest.param(None, [], "unknown", id="not measured"),
    ],
)
def test_the_pool_of_eight_cpus_at_50_percent(used: int | None, pods: list[PoolUse], expected: NodeState) -> None:
    assert node_state(used, 8, 50, pods) == expected


def test_without_cpus_nothing_is_known() -> None:
    assert node_state(1, None, 50, []) == "unknown"


CALM = QuotaUse("c", 1000, 150_000, 0.0)
HUNGRY = CALM._replace(throttled_ratio=0.2)


@pytest.mark.parametrize(
    ("container", "state", "expected"),
    [
        pytest.param(HUNGRY, "idle", 180_000, id="up by a fifth"),
        pytest.param(HUNGRY, "cooling", 150_000, id="not while cooling"),
        pytest.param(HUNGRY, "unknown", 150_000, id="not while nothing is known"),
        pytest.param(HUNGRY, "overload", 120_000, id="down by a fifth"),
        pytest.param(CALM, "idle", 150_000, id="remains"),
        pytest.param(CALM, "overload", 120_000, id="down"),
        pytest.param(CALM._replace(throttled_ratio=None), "idle", 150_000, id="not measured"),
        pytest.param(HUNGRY._replace(tokens=False), "idle", 120_000, id="no tokens"),
        pytest.param(HUNGRY._replace(tokens=False), "cooling", 120_000, id="no tokens while cooling"),
        pytest.param(HUNGRY._replace(quota_us=190_000), "idle", 200_000, id="at most twice the limit"),
        pytest.param(CALM._replace(quota_us=110_000), "overload", 100_000, id="never below the limit"),
        pytest.param(CALM._replace(quota_us=-1), "idle", 100_000, id="a quota that is gone is the limit"),
    ],
)
def test_the_next_quota_and_the_pod_moves_along(container: QuotaUse, state: NodeState, expected: int) -> None:
    done = quota_burst("auto", 200, state, 500_000, [container])
    assert done == ({"c": expected}, 500_000 + expected - container.quota_us)


@pytest.mark.parametrize(("policy", "percent"), [("none", 300), ("cpuBurstOnly", 300), ("auto", 100)])
def test_a_burst_that_is_off_goes_back_to_the_limit(policy: Policy, percent: int) -> None:
    assert quota_burst(policy, percent, "idle", 150_000, [HUNGRY]) == ({"c": 100_000}, 100_000)


def test_a_pod_without_a_quota_stays_so_and_containers_without_a_limit_are_left_alone() -> None:
    assert quota_burst("auto", 200, "idle", -1, [HUNGRY, QuotaUse("d", 0, -1, 0.5)]) == ({"c": 180_000}, -1)


@given(st.lists(st.tuples(st.sampled_from(("idle", "cooling", "overload")), st.booleans(), st.booleans()), max_size=30))
def test_a_quota_stays_between_the_limit_and_its_multiple(rounds: list[tuple[NodeState, bool, bool]]) -> None:
    use = QuotaUse("c", 700, 70_000)
    for state, throttled, tokens in rounds:
        use = use._replace(throttled_ratio=float(throttled), tokens=tokens)
        use = use._replace(quota_us=quota_burst("auto", 300, state, -1, [use]).containers["c"])
        assert 70_000 <= use.quota_us <= 210_000


@pytest.mark.parametrize(
    ("bucket", "usage", "seconds", "tokens"),
    [
        pytest.param(Bucket(1000, 500), 150, 4, 300, id="spent"),
        pytest.param(Bucket(1000, 500), 100, 4, 500, id="at the base nothing is spent"),
        pytest.param(Bucket(1000, 500), 60, 4, 500, id="between nothing happens"),
        pytest.param(Bucket(1000, 500), 50, 4, 700, id="saved"),
        pytest.param(Bucket(1000, 500), 0, 40, 1000, id="full"),
        pytest.param(Bucket(1000, 500), 900, 40, -1000, id="in debt, and no deeper"),
    ],
)
def test_tokens(bucket: Bucket, usage: float, seconds: float, tokens: float) -> None:
    assert spent(bucket, usage, seconds).tokens == tokens


def test_a_bucket_allows_while_it_has_tokens() -> None:
    assert new_bucket(60, 200, 0.5) == (6000, 3000)
    assert new_bucket(60, 200, 0.5).allows
    assert not new_bucket(0, 200, 0.5).allows
    assert not new_bucket(60, 100, 0.5).allows


@pytest.mark.parametrize(("period_s", "allowed"), [(-1, True), (0, False), (60, False)])
def test_only_without_a_period_no_tokens_are_needed(period_s: int, allowed: bool) -> None:
    assert may_exceed(period_s, spent(new_bucket(period_s, 300, 0.0), 300, 60)) == allowed


def test_another_strategy_resizes_a_bucket() -> None:
    assert resized(Bucket(6000, 5000), 10, 200) == (1000, 1000)
    assert resized(Bucket(1000, -900), 60, 200) == (6000, -900)


def test_a_bucket_that_nobody_asks_is_forgotten() -> None:
    assert (expired(60, 120), expired(60, 121)) == (False, True)
