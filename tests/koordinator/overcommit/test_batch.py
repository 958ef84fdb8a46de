"""What is lent to batch and to mid, of the node and of each NUMA zone; when it is told and taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.classes import Band
from j10ce.policy import overcommit
from tests.koordinator.theirs.overcommit.batch import (
    BatchLaw,
    BetterPod,
    NodeUse,
    batch,
    batch_zones,
    is_better,
    margin,
    normalised,
    without_others,
)
from tests.koordinator.theirs.overcommit.mid import MidLaw, MidUse, degraded, mid, to_be_told

LAW = BatchLaw(60)
# Of 64 CPUs the system uses 4, two pods use 6 and 2 and asked for 8 and 10.
NODE = NodeUse(64_000, 1000, 4000, (BetterPod(8000, 6000), BetterPod(10_000, 2000)))


@pytest.mark.parametrize(
    ("law", "use", "expected"),
    [
        pytest.param(LAW, NODE, 26_400, id="by usage"),
        pytest.param(BatchLaw(60, "request"), NODE, 19_400, id="by request, without the system"),
        pytest.param(BatchLaw(60, "maxUsageRequest"), NODE, 16_400, id="by the larger"),
        pytest.param(LAW, NODE._replace(reserved=9000), 21_400, id="more is reserved than the system uses"),
        pytest.param(LAW, NODE._replace(pods=(BetterPod(8000),)), 26_400, id="not measured: what it asked for"),
        pytest.param(LAW, NODE._replace(pods=(BetterPod(8000, 1000, whole=True),)), 26_400, id="LSE"),
        pytest.param(LAW, NODE._replace(dangling=400), 26_000, id="use of pods that nobody listed"),
        pytest.param(BatchLaw(60, "request"), NODE._replace(dangling=400), 19_400, id="not by request"),
        pytest.param(BatchLaw(150), NODE, 84_000, id="more than there is"),
        pytest.param(BatchLaw(150, cap_percent=50), NODE, 32_000, id="a cap"),
        pytest.param(BatchLaw(10), NODE, 0, id="never less than nothing"),
    ],
)
def test_batch(law: BatchLaw, use: NodeUse, expected: int) -> None:
    assert batch(law, use) == expected


def test_a_pod_that_is_not_measured_takes_nothing_by_the_larger_unless_we_mean_it() -> None:
    use = NODE._replace(pods=(BetterPod(8000),))
    law = BatchLaw(60, "maxUsageRequest")
    assert (batch(law, use), batch(law, use, literal=False)) == (34_400, 26_400)


@pytest.mark.parametrize(
    ("band", "phase", "expected"),
    [(Band.PROD, "Running", True), (Band.MID, "Pending", True), (Band.NONE, "Running", True),
     (Band.BATCH, "Running", False), (Band.FREE, "Running", False), (Band.PROD, "Succeeded", False)],
)  # fmt: skip
def test_who_counts(band: Band, phase: str, expected: bool) -> None:
    assert is_better(band, phase) is expected


@pytest.mark.parametrize(("capacity", "threshold", "expected"), [(1001, 65, 350), (1001, 150, -500), (1001, 100, 0)])
def test_the_margin_is_cut_towards_zero(capacity: int, threshold: int, expected: int) -> None:
    assert margin(capacity, threshold) == expected


AMOUNT = st.integers(0, 10**6)
PODS = st.lists(st.tuples(AMOUNT, AMOUNT).map(lambda pair: BetterPod(*pair)), max_size=5).map(tuple)
POLICY = st.sampled_from(("usage", "request", "maxUsageRequest"))


@given(st.integers(0, 200), POLICY, st.none() | st.integers(0, 200), AMOUNT, AMOUNT, AMOUNT, PODS)
def test_our_own_law_lends_the_same_but_for_the_rounding(
    threshold: int,
    by: overcommit.By,
    cap: int | None,
    capacity: int,
    reserved: int,
    system: int,
    pods: tuple[BetterPod, ...],
) -> None:
    theirs = batch(BatchLaw(threshold, by, cap), NodeUse(capacity, reserved, system, pods))
    limit = {} if cap is None else {"batch_percent": cap}
    inputs = overcommit.Inputs(
        capacity,
        headroom=reserved,
        system=system,
        usage=sum(pod.usage or 0 for pod in pods),
        request=sum(pod.request for pod in pods),
        larger=sum(max(pod.request, pod.usage or 0) for pod in pods),
    )
    ours = overcommit.total(overcommit.batch(overcommit.Law(threshold_percent=threshold, by=by, **limit), inputs))
    assert 0 <= theirs - ours <= 1 or (threshold > 100 and 0 <= ours - theirs <= 1)


def test_who_is_bound_counts_in_its_zones_and_everyone_else_in_all_alike() -> None:
    pods = (BetterPod(0, 1000, zones=(0,)), BetterPod(0, 3001), BetterPod(0, 500, zones=(7,)))
    use = NodeUse(20_000, system=1001, pods=pods)
    assert batch_zones(BatchLaw(100), use, {0: 12_000, 1: 8000}) == {0: 8748, 1: 5748}
    assert batch_zones(BatchLaw(100), use, {}) == {}


def test_in_a_zone_a_pod_that_is_not_measured_takes_what_it_asked_for() -> None:
    use = NodeUse(8000, pods=(BetterPod(4000),))
    assert batch_zones(BatchLaw(100, "maxUsageRequest"), use, {0: 4000, 1: 4000}) == {0: 2000, 1: 2000}


@given(st.integers(0, 200), POLICY, AMOUNT, AMOUNT, PODS)
def test_zones_lend_no_more_than_their_node(
    threshold: int, by: overcommit.By, half: int, system: int, pods: tuple[BetterPod, ...]
) -> None:
    use = NodeUse(2 * half, system=system, pods=pods)
    law = BatchLaw(threshold, by)
    assert sum(batch_zones(law, use, {0: half, 1: half}).values()) <= batch(law, use, literal=False) + 2


def test_faster_cpus_lend_more_and_what_others_took_is_not_lent_again() -> None:
    assert (normalised(1000, 1.15), normalised(1000, 1.0), normalised(1000, -1)) == (1150, 1000, 1000)
    assert (without_others(1000, [300, 200]), without_others(100, [300])) == (500, 0)


MID = MidUse(100, prod_reclaimable=30, node_usage=40, system=5, reserved=10, prod_request=50)


@pytest.mark.parametrize(
    ("law", "use", "expected"),
    [
        pytest.param(MidLaw(), MID, 30, id="what prod will not use"),
        pytest.param(MidLaw(), MID._replace(node_usage=90), 10, id="what nobody uses"),
        pytest.param(MidLaw(), MID._replace(prod_reclaimable=None), 0, id="no prediction"),
        pytest.param(MidLaw(), MID._replace(node_usage=None), 0, id="usage is not known"),
        pytest.param(MidLaw(), MID._replace(node_usage=150), 0, id="never less than nothing"),
        pytest.param(MidLaw(unallocated_percent=50), MID, 50, id="half of what nobody asked for"),
        pytest.param(MidLaw(unallocated_percent=50), MID._replace(prod_request=95), 30, id="nothing is left of it"),
        pytest.param(MidLaw(threshold_percent=20), MID, 20, id="a cap"),
        pytest.param(MidLaw(static=True, static_percent=15), MID, 15, id="static"),
        pytest.param(MidLaw(10, static=True, static_percent=15), MID, 10, id="static, and a cap"),
    ],
)
def test_mid(law: MidLaw, use: MidUse, expected: int) -> None:
    assert mid(law, use) == expected


@pytest.mark.parametrize(("age", "expected"), [(None, True), (900, False), (901, True), (0, False)])
def test_what_is_not_known_any_more_is_not_lent(age: float | None, expected: bool) -> None:
    assert degraded(age, 15) is expected


@pytest.mark.parametrize(
    ("old", "new", "age", "expected"),
    [
        pytest.param({"a": 100}, {"a": 110}, 0, False, id="a tenth is too little"),
        pytest.param({"a": 100}, {"a": 111}, 0, True, id="more is not"),
        pytest.param({"a": 100}, {"a": 89}, 0, True, id="nor is less"),
        pytest.param({"a": 100}, {"a": 100}, 301, True, id="old words are said again"),
        pytest.param({"a": 100}, {"a": 100}, 300, False, id="not so old"),
        pytest.param({}, {"a": 0}, 0, True, id="the first word"),
    ],
)
def test_when_an_amount_is_told(old: dict[str, int], new: dict[str, int], age: float, expected: bool) -> None:
    assert to_be_told(old, new, 0.1, age, 300) is expected
