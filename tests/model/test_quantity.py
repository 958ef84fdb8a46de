"""Quantities and durations: exact, round-tripping, and refused with a finding, never with a traceback."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.model.quantity import BINARY, BITRATE, DECIMAL, SUFFIXES, Bytes, Duration, Millicores, Quantity

digits = st.from_regex(r"\A(?:[0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})\Z")
spelled = st.one_of(
    st.builds("{}{}".format, digits, st.sampled_from(sorted(SUFFIXES))),
    st.builds("{}%".format, digits),
    st.builds("{}{}{}".format, digits, st.sampled_from("eE"), st.integers(-9, 9)),
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        *(pytest.param(f"3{s}", 3 * f, id=f"decimal {s or 'none'}") for s, f in DECIMAL.items()),
        *(pytest.param(f"2{s}", 2 * f, id=f"binary {s}") for s, f in BINARY.items()),
        *(pytest.param(f"5{s}", Fraction(5 * f), id=f"line rate {s}") for s, f in BITRATE.items()),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="a fraction of a binary unit"),
        pytest.param(".5", Fraction(1, 2), id="no digit before the point"),
        pytest.param("5.", Fraction(5), id="no digit after the point"),
        pytest.param("1e3", Fraction(1000), id="exponent"),
        pytest.param("12E-2", Fraction(12, 100), id="negative exponent"),
        pytest.param("1E", Fraction(10**18), id="E alone is exa"),
        pytest.param("+1", Fraction(1), id="plus"),
        pytest.param("-0", Fraction(0), id="minus nothing"),
        pytest.param(" 1Gi ", Fraction(2**30), id="blanks around"),
        pytest.param(2, Fraction(2), id="an integer"),
        pytest.param(0.1, Fraction(1, 10), id="a float means what it shows"),
        pytest.param(1e-05, Fraction(1, 10**5), id="a small float"),
    ],
)
def test_a_quantity_means(text: str | float, amount: Fraction) -> None:
    assert Quantity.parse(text) == Quantity(amount)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a quantity"),
        ("Gi", "not a quantity"),
        ("1 Gi", "not a quantity"),
        ("1.2.3", "not a quantity"),
        ("1e100", "not a quantity"),
        ("٣", "not a quantity"),
        ("9" * 30, "not a quantity"),
        ("nan", "not a quantity"),
        ("inf", "not a quantity"),
        pytest.param(float("inf"), "not a quantity", id="infinite"),
        (True, "not a quantity"),
        ("1\n2", "not a quantity"),
        ("-1", "negative"),
        ("1gi", "unknown suffix"),
        ("1KI", "unknown suffix"),
        ("1e1Gi", "not a quantity"),
        ("10E", "too large"),
        ("1e20", "too large"),
        ("1e20%", "not a quantity"),
    ],
)
def test_a_malformed_quantity_is_a_finding(text: str | float, problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        Quantity.parse(text)
    assert caught.value.findings[0].problem.startswith(problem)
    assert caught.value.findings[0].hint


@given(spelled)
@example("0.000000000001m")
@example("1e-99")
@example("33.333333333333%")
@example("0.000000000001n")
@example("100000000000.000000001")
@example("9E")
def test_formatting_then_parsing_is_the_identity(text: str) -> None:
    quantity = parsed(text)
    assert quantity is None or Quantity.parse(str(quantity)) == quantity


def parsed(text: str | float) -> Quantity | None:
    with suppress(Invalid):
        return Quantity.parse(text)
    return None


@given(st.text() | st.from_regex(r"[-+]?[0-9.]*([eE][-+]?[0-9]+)?[a-zA-Z%]*") | st.integers() | st.floats())
def test_no_input_breaks_the_parser(text: str | float) -> None:
    quantity = parsed(text)
    assert quantity is None or quantity.amount >= 0


def test_a_promise_is_rounded_up() -> None:
    assert Quantity.parse("0.1m").millicores() == 1
    assert Quantity.parse("0.5").bytes() == 1


def test_percent_is_of_the_node() -> None:
    assert Quantity.parse("25%").millicores(Millicores(4000)) == 1000
    assert Quantity.parse("33%").bytes(Bytes(10)) == 4
    assert Quantity.parse("1Gi").bytes(Bytes(10)) == 1 << 30


def test_quantities_are_values() -> None:
    assert {Quantity.parse("1Ki"), Quantity.parse("1024")} == {Quantity(1024)}
    assert Quantity.parse("50%") != Quantity.parse("50")
    with pytest.raises(AttributeError):
        Quantity(1).amount = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10m", 600), ("1h30m", 5400), ("7d", 604800), ("1d1h1m1.5s", 90061.5), ("0s", 0), (" 5s ", 5)],
)
def test_a_duration_means(text: str, seconds: float) -> None:
    assert Duration.parse(text).seconds == seconds


@pytest.mark.parametrize("text", ["", " ", "5", "1m1h", "-5s", "1.5h", "ten", "٣s", None, 7, True, "1000000000000s"])
def test_a_malformed_duration_is_a_finding(text: object) -> None:
    with pytest.raises(Invalid, match="not a duration"):
        Duration.parse(text)


@given(st.integers(0, 10**14))
def test_a_duration_survives_being_written(microseconds: int) -> None:
    duration = Duration(microseconds / 10**6)
    assert Duration.parse(str(duration)) == duration


@given(st.text())
def test_no_text_breaks_the_duration_parser(text: str) -> None:
    with suppress(Invalid):
        assert Duration.parse(text).seconds >= 0


def test_an_amount_is_kept_once_however_many_blanks_are_around_it() -> None:
    assert Quantity.parse("7777m" + " " * 1_000) is Quantity.parse("  7777m")


@pytest.mark.parametrize("text", ["1" * 65, "0." + "1" * 900_000, 10**400], ids=["long", "very long", "a number"])
def test_an_amount_that_is_too_long_is_refused_before_it_is_read(text: str | int) -> None:
    with pytest.raises(Invalid) as refused:
        Quantity.parse(text)
    assert len(str(refused.value)) < 1_000


def test_a_long_duration_is_refused() -> None:
    with pytest.raises(Invalid):
        Duration.parse("1s" + "0" * 100)
