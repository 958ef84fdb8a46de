"""What became of owners: sums by hand, means with what they are worth, and the same picture for the same runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.sim.cluster.chance import Spans, share
from j10ce.sim.cluster.given.scenario import Refund
from j10ce.sim.cluster.outcome import RunResult, changes, estimate, outcome
from j10ce.sim.cluster.plot import plotted
from j10ce.sim.cluster.tally import OwnerSums, Tally, gini

TARIFF = (Refund(short=0.05, share=1.0), Refund(short=0.0, share=0.1))


def sums(there: float, running: float, discarded: float = 0.0) -> OwnerSums:
    made = OwnerSums()
    made.there, made.running, made.discarded = there, running, discarded
    return made


def test_a_class_is_the_sum_of_its_owners() -> None:
    tally = Tally(TARIFF)
    tally.fold("a", "batch", 0.9, 0.5, sums(3600, 3600), 0)
    tally.fold("b", "batch", 0.9, 0.5, sums(3600, 3200.4), 1)
    tally.fold("c", "batch", 0.9, 0.5, sums(7200, 5400, 1800), 2)
    batch = tally.classes["batch"].results()
    assert batch["owners"] == 3
    assert batch["availability"] == pytest.approx((1 + 0.889 + 0.5) / 3)
    assert batch["deficit"] == pytest.approx((0.011 + 0.4) / 3)
    assert (batch["minimum"], batch["belowSlo"], batch["belowByAPoint"]) == (0.5, 2, 2)
    assert batch["penalty"] == pytest.approx(0.5 * 1 * 0.1 + 0.5 * 2 * 1.0)  # price × hours × what is refunded
    assert [owner.name for owner in tally.owners()] == ["c", "b", "a"]


def test_an_owner_that_never_had_a_pod_lacked_nothing() -> None:
    assert OwnerSums().availability == 1.0


def slow_gini(values: list[int]) -> float:
    n, mean = len(values), sum(values) / len(values)
    return sum(abs(x - y) for x in values for y in values) / (2 * n * n * mean) if mean else 0.0


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_the_gini_of_counts_is_that_of_all_pairs(values: list[int]) -> None:
    counts = {value: values.count(value) for value in values}
    assert gini(counts) == pytest.approx(slow_gini(values), abs=1e-9)


def test_what_is_known_of_a_mean_grows_with_the_seeds() -> None:
    assert estimate([3.0]) == (3.0, None)
    mean, within = estimate([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert within == pytest.approx(4.303 / 3**0.5)
    assert estimate([2.0] * 50).within == 0.0


def run(availability: float) -> RunResult:
    tally = Tally(TARIFF)
    for n in range(3):
        tally.fold(f"o{n}", "web", 0.9, 1.0, sums(100, 100 * availability - n), n)
    web = tally.classes["web"]
    return RunResult({"starts": 3.0}, {"web": web.results()}, {"web": web.curve()}, tally.owners())


def test_runs_of_several_seeds_make_one_outcome() -> None:
    made = outcome("nodes=-10%", "lazy", [run(0.9), run(0.8)])
    assert made.classes["web"]["availability"].mean == pytest.approx(0.84)
    assert len(made.curves["web"]) == 101
    assert made.curves["web"][0] == pytest.approx(0.83)
    assert made.curves["web"][100] == pytest.approx(0.85)
    plain = made.plain()
    assert plain["totals"] == {"starts": {"mean": 3.0, "within": 0.0}}
    assert plain["owners"][0]["class"] == "web"
    before = outcome("", "lazy", [run(0.9)])
    (of_all, *of_web) = changes([before, outcome("nodes=-10%", "lazy", [run(0.8)])])
    assert (of_all.name, of_all.by.mean, of_all.certain) == ("starts", 0.0, False)
    (availability,) = [change for change in of_web if change.name == "availability"]
    assert availability.by.mean == pytest.approx(-0.1)
    assert availability.certain
    assert availability.plain()["class"] == "web"


def test_what_chance_does_to_both_runs_is_no_part_of_a_change() -> None:
    before = outcome("", "lazy", [run(0.9), run(0.5)])
    (change,) = [c for c in changes([before, outcome("x", "lazy", [run(0.89), run(0.49)])]) if c.name == "availability"]
    assert change.by.mean == pytest.approx(-0.01)
    assert change.certain
    assert change.before.within is not None
    assert change.before.within > 1


def test_the_same_outcomes_make_the_same_picture() -> None:
    made = [outcome("", policy, [run(at)]) for policy, at in (("lazy", 0.9), ("<b>", 0.7))]
    picture = plotted("a & b", made, {"web": 0.9})
    assert picture == plotted("a & b", made, {"web": 0.9})
    root = ElementTree.fromstring(picture)
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_a_picture_of_nothing_is_a_picture() -> None:
    assert ElementTree.fromstring(plotted("nothing", [], {})).tag.endswith("svg")


def test_a_picture_is_one_whatever_a_scenario_and_its_classes_are_called() -> None:
    odd = "\x1b]0;a\x07\x00\x9b<&\ud800"
    picture = plotted(odd, [outcome("", odd, [run(0.9)])], {"web": 0.9})
    assert ElementTree.fromstring(picture.encode()).tag.endswith("svg")
    assert "\x1b" not in picture


def test_what_is_drawn_depends_on_its_name_alone() -> None:
    spans = Spans({1.0: 1, 2.0: 3}, more=0.5)
    draws = [spans.draw(7, owner, life) for owner in range(100) for life in range(100)]
    assert draws == [spans.draw(7, owner, life) for owner in range(100) for life in range(100)]
    assert set(draws) == {1.5, 2.5}
    assert sum(draws) / len(draws) == pytest.approx(2.25, abs=0.02)
    assert draws[:50] != [spans.draw(8, 0, life) for life in range(50)]


@given(st.integers(), st.integers(), st.integers())
def test_a_share_is_a_share(seed: int, one: int, other: int) -> None:
    assert 0 <= share(seed, one, other) < 1
