"""Values that are names: what a hold may say of the group that all threads are in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import NO_TEXT, parse_value, render


@pytest.mark.parametrize(("text", "value"), [("be", "be"), (" j10ce-be_1.x ", "j10ce-be_1.x"), (NO_TEXT, "")])
@pytest.mark.parametrize("knob", ["resctrl.group", "sched.cookie"])
def test_a_name_is_a_value(knob: str, text: str, value: str) -> None:
    assert parse_value(knob, text) == value


@pytest.mark.parametrize("text", ["", "..", "a/b", "#1f", "a b", "é", "x" * 129, "-a"])
def test_what_is_no_name_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(ValueError, match="takes a name of letters, digits"):
        parse_value("resctrl.group", text)


@given(st.text(max_size=40))
def test_what_is_taken_is_written_as_it_is_shown(text: str) -> None:
    try:
        value = parse_value("sched.cookie", text)
    except ValueError:
        return
    assert parse_value("sched.cookie", render("sched.cookie", value)) == value
