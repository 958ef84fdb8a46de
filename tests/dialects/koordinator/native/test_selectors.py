"""The nodes of one selector without those of another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.native.selectors import without
from j10ce.dialects.koordinator.native.stacking import NativeLayer, TooTangled, stacked
from j10ce.model.kinds import Requirement, Selector
from j10ce.model.parts.strategy import BurstSection, Strategy, SuppressSection
from j10ce.policy.select import matches

KEYS, VALUES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"])
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        key=KEYS,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(VALUES, min_size=1, unique=True).map(tuple),
    ),
    st.builds(Requirement, key=KEYS, operator=st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.builds(
    Selector,
    match_labels=st.dictionaries(KEYS, VALUES, max_size=2),
    match_expressions=st.lists(REQUIREMENTS, max_size=3).map(tuple),
)


@given(SELECTORS, SELECTORS, st.dictionaries(KEYS, VALUES))
def test_exactly_one_piece_selects_a_node_of_the_one_that_is_none_of_the_other(
    one: Selector, other: Selector, labels: dict[str, str]
) -> None:
    hits = sum(matches(piece, labels) for piece in without(one, other))
    assert hits == (matches(one, labels) and not matches(other, labels))


def test_banned_values_of_one_label_stand_in_one_list() -> None:
    everywhere = Selector()
    (one,) = without(everywhere, Selector(match_labels={"pool": "gpu"}))
    (both,) = without(one, Selector(match_labels={"pool": "spot"}))
    assert both.match_expressions == (Requirement(key="pool", operator="NotIn", values=("gpu", "spot")),)


def test_entries_that_overlap_in_too_many_ways_are_said_to() -> None:
    """Ten entries of two labels each that switch off what the cluster says would need a thousand objects."""
    off = Strategy()
    entries = [NativeLayer(f"e{n}", Selector(match_labels={f"a{n}": "x", f"b{n}": "x"}), -n, off) for n in range(10)]
    cluster = NativeLayer("cluster", Selector(), -100, Strategy(burst=BurstSection(policy="auto")))
    with pytest.raises(TooTangled):
        stacked([*entries, cluster])


def test_a_layer_that_says_no_more_than_those_above_leaves_out_nobody() -> None:
    above = NativeLayer("e", Selector(match_labels={"pool": "gpu"}), 1, Strategy(burst=BurstSection(policy="none")))
    below = NativeLayer("cluster", Selector(), 0, Strategy(burst=BurstSection(policy="auto")))
    assert stacked([above, below]) == [above, below]
    more = below._replace(strategy=Strategy(burst=BurstSection(policy="auto"), suppress=SuppressSection(mode="quota")))
    assert stacked([above, more])[1].selector != Selector()
