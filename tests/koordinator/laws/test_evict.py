"""How much is freed by eviction, and who goes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.config.threshold import satisfaction_valid
from tests.koordinator.theirs.laws.evict import (
    Asking,
    BestEffortCpu,
    Measured,
    Satisfaction,
    allocatable_release,
    satisfaction_release,
    usage_release,
)
from tests.koordinator.theirs.laws.victims import Candidate, by_memory, by_satisfaction, by_usage, evict

RULE = Satisfaction(40, 60)
POOR = BestEffortCpu(limit=8000, used=7500, request=40_000)  # satisfied to 20 %
SEEN = Measured(POOR, samples=60, last=POOR)
LENT = RULE._replace(by_allocatable=True)


@pytest.mark.parametrize(
    ("rule", "measured", "expected"),
    [
        pytest.param(RULE, SEEN, 16_000, id="up to 60 % of 40 CPUs"),
        pytest.param(RULE, SEEN._replace(last=None), 0, id="no last sample"),
        pytest.param(RULE, SEEN._replace(last=POOR._replace(used=1000)), 0, id="the last sample is calm"),
        pytest.param(RULE, SEEN._replace(last=POOR._replace(limit=12_000, used=12_000)), 12_000, id="the smaller"),
        pytest.param(RULE, SEEN._replace(last=POOR._replace(limit=20_000, used=20_000)), 0, id="satisfied by now"),
        pytest.param(RULE, SEEN._replace(last=POOR._replace(used=8000)), 16_000, id="limits alike: the average"),
        pytest.param(RULE, SEEN._replace(average=POOR._replace(used=7199)), 0, id="on average below 90 %"),
        pytest.param(RULE, SEEN._replace(average=POOR._replace(used=7200)), 16_000, id="on average at 90 %"),
        pytest.param(RULE._replace(usage_percent=95), SEEN, 0, id="another threshold"),
        pytest.param(RULE, SEEN._replace(average=POOR._replace(limit=16_000, used=16_000)), 8000, id="at the mark"),
        pytest.param(RULE, SEEN._replace(average=POOR._replace(limit=16_001, used=16_001)), 0, id="above it"),
        pytest.param(RULE._replace(window_s=180), SEEN, 16_000, id="a third of the window"),
        pytest.param(RULE._replace(window_s=181), SEEN, 0, id="less than a third"),
        pytest.param(Satisfaction(), SEEN, 0, id="not configured"),
        pytest.param(LENT, SEEN._replace(batch_allocatable=8_300), 15_700, id="lent"),
        pytest.param(LENT, SEEN._replace(batch_allocatable=12_000), 0, id="little of what is lent is used"),
        pytest.param(LENT, SEEN._replace(batch_allocatable=0), 23_999, id="nothing is lent: a thousandth is"),
        pytest.param(LENT, SEEN, 0, id="nobody says what is lent"),
    ],
)
def test_satisfaction(rule: Satisfaction, measured: Measured, expected: int) -> None:
    assert satisfaction_release(rule, measured) == expected


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        pytest.param(BestEffortCpu(0, 100, 4000), 0, id="no limit to use"),
        pytest.param(BestEffortCpu(900, 0, 4000), 1500, id="less than a CPU counts as used"),
        pytest.param(BestEffortCpu(900, 0, 0), 0, id="nobody asked for anything"),
    ],
)
def test_satisfaction_of_little(cpu: BestEffortCpu, expected: int) -> None:
    assert satisfaction_release(RULE, Measured(cpu, 60, cpu)) == expected


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (1, 1, True),
        (60, 99, True),
        (61, 99, False),
        (60, 100, False),
        (0, 50, False),
        (50, 49, False),
        (None, 50, False),
    ],
)  # fmt: skip
def test_marks_of_satisfaction(lower: int | None, upper: int | None, expected: bool) -> None:
    assert satisfaction_valid(lower, upper) is expected


@pytest.mark.parametrize(
    ("used", "threshold", "lower", "expected"),
    [
        pytest.param(8000, 80, 70, 1000, id="down to the lower mark"),
        pytest.param(7999, 80, 70, 0, id="below the threshold"),
        pytest.param(8099, 80, None, 200, id="two percent below the threshold, of whole percents"),
        pytest.param(9000, 80, 95, 0, id="a lower mark above the usage"),
    ],
)
def test_usage(used: int, threshold: int, lower: int | None, expected: int) -> None:
    assert usage_release(10_000, used, threshold, lower) == expected


def test_a_threshold_below_nothing_frees_nothing() -> None:
    assert allocatable_release({"batch-cpu": 0}, [Asking(5000, {"batch-cpu": 1})], ["batch-cpu"], -1, 0, 9999) == {}


def test_a_node_of_nothing_frees_nothing() -> None:
    assert usage_release(0, 5, 80) == 0


PODS = (
    Asking(5000, {"batch-cpu": 6000}),
    Asking(5500, {"batch-cpu": 5000}),
    Asking(7000, {"mid-cpu": 4000}),
)


@pytest.mark.parametrize(
    ("lent", "most", "expected"),
    [
        pytest.param({"batch-cpu": 10_000, "mid-cpu": 4000}, 7999, {"batch-cpu": 1000}, id="more than the threshold"),
        pytest.param({"batch-cpu": 11_000, "mid-cpu": 4000}, 7999, {}, id="just at it"),
        pytest.param({"batch-cpu": 10_000}, 7999, {"batch-cpu": 1000, "mid-cpu": 4000}, id="mid is not lent at all"),
        pytest.param({"batch-cpu": 0}, 5999, {"batch-cpu": 11_000}, id="nothing is lent any more"),
        pytest.param({"batch-cpu": 5000}, 5000, {"batch-cpu": 1000}, id="only up to a priority"),
    ],
)
def test_allocatable(lent: dict[str, int], most: int, expected: dict[str, int]) -> None:
    assert allocatable_release(lent, PODS, ("batch-cpu", "mid-cpu"), 100, 100, most) == expected


def names(pods: list[Candidate]) -> str:
    return "".join(pod.name for pod in pods)


def test_best_effort_goes_by_priority_and_by_how_much_of_its_request_it_uses() -> None:
    pods = [
        Candidate("a", {}, 5500, used=100, request=1000),
        Candidate("b", {}, 5000, used=100, request=1000),
        Candidate("c", {}, 5000, used=500, request=1000),
        Candidate("d", {}, 5000, used=900),
    ]
    assert names(by_satisfaction(pods)) == "cbda"


def test_everyone_goes_by_annotation_priority_label_and_usage() -> None:
    pods = [
        Candidate("a", {}, 9000, eviction_priority=-1),
        Candidate("b", {}, 5000, sub_priority=9999, used=9),
        Candidate("c", {}, 5000, used=1, request=7),
        Candidate("d", {}, 5000, used=2, request=6),
        Candidate("e", {}, 4000),
    ]
    assert names(by_usage(pods)) == "aedcb"
    assert names(by_usage(pods, by_request=True)) == "aecdb"


def test_memory_goes_by_priority_and_usage_and_who_is_not_measured_goes_last_by_name_backwards() -> None:
    pods = [
        Candidate("a", {}, 5500, used=9),
        Candidate("b", {}, 5000, used=1),
        Candidate("c", {}, 5000),
        Candidate("d", {}, 5000),
        Candidate("e", {}, 5000, used=2),
        Candidate("f", {}, used=1),
    ]
    assert names(by_memory(pods)) == "febdca"


def test_one_victim_may_serve_several_targets_and_who_helps_none_is_left_alone() -> None:
    pods = [
        Candidate("a", {"cpu": 5}),
        Candidate("b", {"memory": 5}),
        Candidate("c", {"cpu": 5, "memory": 5}),
        Candidate("d", {"cpu": 5, "memory": 5}),
    ]
    assert evict(pods, {"cpu": 5, "memory": 8}) == (("a", "b", "c"), {"cpu": 10, "memory": 10})
    assert evict(pods, {"memory": 5}).victims == ("b",)
    assert evict(pods, {"memory": 0}).victims == ()


def test_of_whom_nothing_is_known_goes_and_counts_for_nothing() -> None:
    pods = [Candidate("a", {"m": 5}), Candidate("b", {}), Candidate("c", {"m": 5})]
    assert evict(pods, {"m": 6}) == (("a", "b", "c"), {"m": 10})


def test_who_is_leaving_counts_and_is_no_victim_again() -> None:
    pods = [Candidate("a", {"m": 5}, leaving=True), Candidate("b", {"m": 5}), Candidate("c", {"m": 5})]
    assert evict(pods, {"m": 5}) == ((), {"m": 5})
    assert evict(pods, {"m": 6}) == (("b",), {"m": 10})
    assert evict(reversed(pods), {"m": 5}).victims == ("c",)
    assert evict([pods[1], pods[0]], {"m": 8}) == (("b",), {"m": 10})


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans())), st.integers(0, 200))
def test_no_victim_is_taken_once_enough_is_freed(pods: list[tuple[int, bool]], target: int) -> None:
    listed = [Candidate(str(n), {"m": frees}, leaving=leaving) for n, (frees, leaving) in enumerate(pods)]
    done = evict(listed, {"m": target})
    taken = [pods[int(name)][0] for name in done.victims]
    assert all(taken)
    if taken:
        assert sum(taken) - taken[-1] < target
    assert done.freed["m"] >= min(target, sum(frees for frees, _ in pods))
