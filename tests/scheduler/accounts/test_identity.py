"""Whose account a pod is on, and what a bad annotation means."""

from __future__ import annotations

import math

import pytest

from j10ce.scheduler.accounts.identity import acceptable_overhead, identified
from j10ce.scheduler.accounts.measure import PodCounts, ServiceSums, metric
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts

WEB = OwnerFacts("StatefulSet", "shop", "web", slots=3, slo="0.6")


def pod(owner: OwnerFacts | None = WEB, **annotations: str) -> PodFacts:
    return PodFacts("u", "shop", "web-0", annotations=annotations, owner=owner)


@pytest.mark.parametrize(
    ("of", "shared", "key"),
    [
        pytest.param(pod(), False, "shop/StatefulSet/web", id="its owner, in any namespace"),
        pytest.param(pod(None), False, "shop/Pod/web-0", id="a pod of nobody"),
        pytest.param(pod(controller="mine"), False, "shop/mine", id="an annotation, of its own namespace"),
        pytest.param(pod(controller="bank/Job/x"), False, "shop/bank/Job/x", id="another namespace's account"),
        pytest.param(pod(controller="\x1b[2J"), False, "shop/StatefulSet/web", id="one that acts on a terminal"),
        pytest.param(pod(controller="a\nb"), True, "", id="one of two lines, classic"),
        pytest.param(pod(controller="x" * 513), False, "shop/StatefulSet/web", id="an endless one"),
        pytest.param(pod(WEB._replace(kind="\x1b[2J")), False, "shop/Pod/web-0", id="an owner that acts on a terminal"),
        pytest.param(pod(WEB._replace(name="x" * 513)), False, "shop/Pod/web-0", id="an endless owner"),
        pytest.param(pod(controller="mine"), True, "mine", id="an annotation, classic"),
        pytest.param(pod(), True, "", id="no annotation, classic"),
        pytest.param(pod(controller=""), True, "", id="an empty one, classic"),
        pytest.param(pod(controller=""), False, "shop/StatefulSet/web", id="an empty one"),
    ],
)
def test_the_key_of_an_account(of: PodFacts, shared: bool, key: str) -> None:
    assert identified(of, shared=shared).key == key


@pytest.mark.parametrize(
    ("of", "slo", "faults"),
    [
        pytest.param(pod(slo="0.9"), 0.9, 0, id="its own"),
        pytest.param(pod(), 0.6, 0, id="of its owner"),
        pytest.param(pod(None), 0.7, 0, id="of its profile"),
        pytest.param(pod(slo="abc"), 0.7, 1, id="no number"),
        pytest.param(pod(slo="nan"), 0.7, 1, id="not a number"),
        pytest.param(pod(slo="1e400"), 0.7, 1, id="a number that is too large"),
        pytest.param(pod(slo="-1"), 0.7, 1, id="negative"),
        pytest.param(pod(slo="7"), 0.7, 1, id="above one"),
        pytest.param(pod(slo="0.9", acceptablePreemptionOverhead="x", qosMeasuring="y"), 0.9, 2, id="two other faults"),
    ],
)
def test_a_bad_annotation_is_a_fault_and_as_if_it_were_not_there(of: PodFacts, slo: float, faults: int) -> None:
    identity = identified(of, default_slo=0.7)
    assert (identity.slo, len(identity.faults)) == (slo, faults)
    assert identity.acceptable is None


def test_a_key_that_is_no_name_is_a_fault() -> None:
    assert len(identified(pod(controller="a\u202eb")).faults) == 1


@pytest.mark.parametrize(
    ("slo", "annotated", "default", "acceptable"),
    [(0.8, None, 1.0, 0.2), (0.8, 0.05, 1.0, 0.05), (0.8, 0.5, 1.0, 0.2), (0.8, None, 0.1, 0.1), (1.0, 0.5, 1.0, 0.0)],
)
def test_nobody_accepts_to_lose_more_than_its_slo_leaves(
    slo: float, annotated: float | None, default: float, acceptable: float
) -> None:
    assert acceptable_overhead(slo, annotated, default) == pytest.approx(acceptable)


@pytest.mark.parametrize("approach", ["independent", "average", "aggregate", "concurrent"])
def test_who_asks_for_nothing_lacks_nothing_and_can_lose_all_that_it_had(approach: str) -> None:
    pods = PodCounts(0, 1, 0, 1)
    assert metric(approach, ServiceSums(0.0, 0.0, 5.0, 0.0, 1), 0.0, pods) == 0.0
    assert metric(approach, ServiceSums(9.0, 0.0, 5.0, 0.0, 1), 0.0, pods) == math.inf
