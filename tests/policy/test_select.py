from __future__ import annotations

import pytest

from j10ce.model.kinds import Selector
from j10ce.policy.select import matches
from j10ce.testing.build import selector

LABELS = {"app": "web", "zone": "a"}


@pytest.mark.parametrize(
    ("wanted", "hit"),
    [
        pytest.param(selector(), True, id="empty selects everything"),
        pytest.param(selector({"app": "web"}), True, id="label"),
        pytest.param(selector({"app": "db"}), False, id="other value"),
        pytest.param(selector({"tier": "x"}), False, id="absent label"),
        pytest.param(selector({"app": "web", "zone": "b"}), False, id="all labels must match"),
        pytest.param(selector({}, ("zone", "In", ["a", "b"])), True, id="In"),
        pytest.param(selector({}, ("zone", "In", ["b"])), False, id="not In"),
        pytest.param(selector({}, ("rack", "In", ["b"])), False, id="In needs the key"),
        pytest.param(selector({}, ("zone", "NotIn", ["a"])), False, id="NotIn"),
        pytest.param(selector({}, ("rack", "NotIn", ["a"])), True, id="NotIn holds without the key"),
        pytest.param(selector({}, ("zone", "Exists", [])), True, id="Exists"),
        pytest.param(selector({}, ("rack", "Exists", [])), False, id="Exists needs the key"),
        pytest.param(selector({}, ("rack", "DoesNotExist", [])), True, id="DoesNotExist"),
        pytest.param(selector({}, ("zone", "DoesNotExist", [])), False, id="DoesNotExist refuses the key"),
        pytest.param(selector({"app": "web"}, ("zone", "In", ["b"])), False, id="labels and expressions"),
    ],
)
def test_a_selector_matches_as_in_kubernetes(wanted: Selector, hit: bool) -> None:
    assert matches(wanted, LABELS) is hit
