"""Resource vectors and cpuset text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import (
    BUDGETS,
    CGROUP,
    FILES,
    FREEZER,
    KNOBS,
    ROOT,
    KnobRole,
    Setting,
    Unit,
    format_cpus,
    group,
    parse_cpus,
    render,
    workload,
)
from j10ce.model.resource import NOTHING, RESOURCES, Resources, spell
from j10ce.testing.build import resources

vectors = st.builds(Resources, *[st.integers(0, 10**12)] * 5)


@given(vectors, vectors)
def test_vectors_add_and_take_away(a: Resources, b: Resources) -> None:
    assert a.plus(b).minus(b) == a
    assert a.minus(a.plus(b)) == NOTHING


@given(vectors, vectors)
def test_fitting_is_the_order_of_at_least_and_at_most(a: Resources, b: Resources) -> None:
    assert a.fits(a.at_least(b))
    assert a.at_most(b).fits(b)
    assert a.fits(b) == (a.at_least(b) == b) == (a.at_most(b) == a)


def test_every_resource_counts_for_fitting() -> None:
    for n in range(len(RESOURCES)):
        one = Resources._make(int(n == m) for m in range(len(RESOURCES)))
        assert not one.fits(NOTHING)
        assert one.dominant_share(NOTHING) == 1.0


def test_the_dominant_share_is_the_largest() -> None:
    assert resources("1", "1Gi").dominant_share(resources("4", "2Gi")) == 0.5


def test_a_vector_is_shown_without_what_it_lacks() -> None:
    assert str(resources("1500m", "1.5Gi", "100Mbit")) == "cpu 1500m, memory 1.5Gi, network 100Mbit"
    assert str(NOTHING) == "nothing"


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 100, "100"),
        ("network", 10**8, "100Mbit"),
    ],
)
def test_amounts_are_shown_as_people_read_them(resource: str, amount: int, shown: str) -> None:
    assert spell(resource, amount) == shown


@given(st.frozensets(st.integers(0, 300), max_size=40))
def test_cpu_lists_round_trip(cpus: frozenset[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == cpus


def test_cpu_lists_are_spelled_as_the_kernel_does() -> None:
    assert format_cpus(frozenset({0, 1, 2, 3, 8, 10, 11})) == "0-3,8,10-11"
    assert parse_cpus("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert parse_cpus("\n") == frozenset()


@pytest.mark.parametrize("text", ["3-1", "a", "-1", "0-", "1-2-3", "0-99999999999", "0x1", "٣", "8192", "0-8191,0"])
def test_a_malformed_cpu_list_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_cpus(text)


@given(st.text())
def test_no_text_breaks_the_cpu_list_parser(text: str) -> None:
    with suppress(ValueError):
        assert all(0 <= cpu < 8192 for cpu in parse_cpus(text))


def test_the_cpus_of_the_largest_machine_are_read() -> None:
    assert parse_cpus("0-4095,4096-8191") == frozenset(range(8192))


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_is_described_consistently(name: str) -> None:
    knob = KNOBS[name]
    assert knob.name == name
    controller = {"cgroup": FREEZER}.get(name.split(".")[0], name.split(".")[0])
    assert (controller == knob.controller) == (knob.on in (BUDGETS, CGROUP, FILES))
    assert knob.meaning
    assert knob.low <= knob.high
    if isinstance(knob.default, float):
        assert knob.low <= knob.default <= knob.high
    assert isinstance(knob.default, frozenset) == (knob.unit is Unit.SET)
    assert (knob.unit is Unit.FLAG) == (knob.role is KnobRole.SWITCH)
    assert render(name, knob.default)


@pytest.mark.parametrize(
    ("knob", "value", "shown"),
    [
        ("cpu.max", float("inf"), "max"),
        ("cpu.max", 50_000.0, "50000 (0.5 CPUs)"),
        ("memory.low", float(3 << 29), "1.5Gi"),
        ("cpuset.cpus", frozenset({0, 1}), "0-1"),
        ("cpuset.cpus", frozenset(), "(all of the parent)"),
        ("cpu.idle", 1.0, "1"),
        ("net.egress.ceil", 50e6, "50Mbit"),
        ("io.max.rbps", float(50 << 20), "50Mi"),
        ("io.max.riops", 200.0, "200"),
        ("io.latency", 5000.0, "5000 µs"),
        ("net.share", "", "(none)"),
        ("memory.low", None, "gone"),
    ],
)
def test_values_are_shown_in_their_knobs_unit(knob: str, value: float | frozenset[int] | None, shown: str) -> None:
    assert render(knob, value) == shown


def test_targets_and_settings_have_one_spelling() -> None:
    assert group("") == group("/") == ROOT
    assert str(Setting(workload("default", "web"), "io.max", "8:0")) == "workload/default/web io.max[8:0]"
