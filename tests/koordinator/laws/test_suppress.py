"""How much CPU best effort may use, which CPUs, and which quota."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.koordinator.theirs.laws.suppress import Suppression, Use, allowed_milli, stepped_quota
from tests.koordinator.theirs.laws.suppress_cpus import (
    CpuPlace,
    Pinned,
    recovered_cpus,
    select,
    suppressed_cpus,
)

NODE = Suppression(16_000, 9000, 75, (Use(5000), Use(3000, best_effort=True)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(NODE, 6000, id="12 CPUs, less 5 of others, less 1 of the system"),
        pytest.param(NODE._replace(pods=(Use(5000), Use(3000))), 3000, id="who is not known is not best effort"),
        pytest.param(NODE._replace(host_apps=(Use(1000),)), 6000, id="an application was part of the system"),
        pytest.param(NODE._replace(host_apps=(Use(1000, best_effort=True),)), 7000, id="one that gives way, too"),
        pytest.param(NODE._replace(reserved_milli=2500), 4500, id="what is reserved counts where it is more"),
        pytest.param(NODE._replace(reserved_milli=500), 6000, id="and does not where it is less"),
        pytest.param(NODE._replace(used_milli=7000), 7000, id="the system never uses less than nothing"),
        pytest.param(NODE._replace(pods=(Use(15_000),)), -3000, id="others use more than the threshold"),
        pytest.param(NODE._replace(pods=(Use(15_000),), min_percent=10), 1600, id="at least the floor"),
        pytest.param(NODE._replace(min_percent=10), 6000, id="a floor that is lower says nothing"),
        pytest.param(Suppression(0, 0, 65), 0, id="no node"),
    ],
)
def test_what_best_effort_may_use(given: Suppression, expected: int) -> None:
    assert allowed_milli(given) == expected


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 100), st.integers(0, 10**6), st.integers(0, 100))
def test_it_is_never_more_than_the_threshold_or_the_floor(
    capacity: int, used: int, threshold: int, others: int, floor: int
) -> None:
    allowed = allowed_milli(Suppression(capacity, used, threshold, (Use(others),), min_percent=floor))
    assert capacity * floor // 100 <= allowed <= max(capacity * threshold, capacity * floor) // 100


@pytest.mark.parametrize(
    ("allowed", "current", "expected"),
    [
        pytest.param(5000, 1_000_000, 500_000, id="shrinks at once"),
        pytest.param(5000, 100_000, 260_000, id="grows by a tenth of the node"),
        pytest.param(2500, 100_000, 250_000, id="grows to what it may have"),
        pytest.param(5000, -1, 500_000, id="had no quota"),
        pytest.param(5000, 490_000, 490_000, id="not worth a write"),
        pytest.param(5000, 484_000, 500_000, id="worth a write"),
        pytest.param(-9000, 10_000, 2000, id="never below the least, which is always written"),
        pytest.param(0, 2000, 2000, id="stays at the least"),
        pytest.param(100, -1, -1, id="a small quota beside none is taken for no difference"),
    ],
)
def test_the_next_quota(allowed: int, current: int, expected: int) -> None:
    assert stepped_quota(allowed, current, 16) == expected


@given(st.integers(-(10**5), 10**5), st.integers(2000, 10**7), st.integers(1, 256))
def test_a_quota_settles(allowed: int, current: int, cores: int) -> None:
    for _ in range(10**7 // (cores * 10_000) + 2):
        current = stepped_quota(allowed, current, cores)
    assert abs(current - max(allowed * 100, 2000)) < cores * 1000
    assert stepped_quota(allowed, current, cores) == current


def machine(nodes: int, cores: int, threads: int = 2) -> list[CpuPlace]:
    """Hyperthreads of a core are neighbours by number."""
    return [
        CpuPlace(c, c // threads, c // threads // cores, c // threads // cores) for c in range(nodes * cores * threads)
    ]


@pytest.mark.parametrize(
    ("count", "places", "expected"),
    [
        pytest.param(4, machine(2, 4), [0, 1, 8, 9], id="a pair of each node"),
        pytest.param(3, machine(2, 4), [0, 1, 8], id="then one of the next"),
        pytest.param(1, machine(2, 4), [0], id="one"),
        pytest.param(0, machine(2, 4), [], id="none"),
        pytest.param(17, machine(2, 4), [], id="more than there are"),
        pytest.param(16, machine(2, 4), [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15], id="all"),
        pytest.param(3, machine(2, 4, 1), [0, 4, 1], id="without hyperthreads"),
        pytest.param(3, [CpuPlace(1, 0), CpuPlace(2, 1), CpuPlace(3, 1)], [2, 3, 1], id="half a core last"),
        pytest.param(2, [*machine(2, 2)[1:]], [4, 5], id="the larger node first"),
        pytest.param(1, [], [], id="no CPU at all"),
    ],
)
def test_cpus_are_spread_and_cores_kept_together(count: int, places: list[CpuPlace], expected: list[int]) -> None:
    assert select(count, places) == expected


PLACES = st.lists(
    st.builds(CpuPlace, st.integers(0, 64), st.integers(0, 16), st.integers(0, 1), st.integers(0, 1)),
    unique_by=lambda place: place.cpu,
)


@given(st.integers(0, 70), PLACES)
def test_as_many_different_cpus_as_asked_for_or_none(count: int, places: list[CpuPlace]) -> None:
    chosen = select(count, places)
    assert len({*chosen}) == len(chosen) == (count if count <= len(places) else 0)
    assert {*chosen} <= {place.cpu for place in places}


def cpus(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


EIGHT = machine(2, 2)  # 0-3, 4-7


@pytest.mark.parametrize(
    ("allowed", "pinned", "old", "expected"),
    [
        pytest.param(4000, Pinned(), cpus(*range(8)), cpus(0, 1, 4, 5), id="shrinks at once"),
        pytest.param(3100, Pinned(), cpus(*range(8)), cpus(0, 1, 4, 5), id="parts of a CPU are a CPU"),
        pytest.param(8000, Pinned(), cpus(0, 1), cpus(0, 1, 4), id="grows by one of eight"),
        pytest.param(-500, Pinned(), cpus(*range(8)), cpus(0, 1), id="never below two"),
        pytest.param(4000, Pinned(lse=cpus(0, 1)), cpus(*range(8)), cpus(4, 5, 2, 3), id="exclusive CPUs are closed"),
        pytest.param(
            4000, Pinned(lsr=cpus(0, 1, 2, 3)), cpus(*range(8)), cpus(0, 1, 4, 5), id="reserved ones give their part"
        ),
        pytest.param(
            2000, Pinned(reserved=cpus(0, 1, 2, 3), system=cpus(4, 5)), cpus(6), cpus(6, 7), id="node and system"
        ),
        pytest.param(3000, Pinned(lse=cpus(*range(6))), cpus(0, 1, 2), None, id="not as many are left"),
        pytest.param(
            7000,
            Pinned(lse=cpus(6, 7), lsr=cpus(0, 1)),
            cpus(*range(8)),
            cpus(0, 1),
            id="of LSR its proportion, where the rest has not as many",
        ),
        pytest.param(3000, Pinned(lse=cpus(*range(8))), cpus(0, 1), None, id="none is left"),
    ],
)
def test_the_next_cpus(allowed: int, pinned: Pinned, old: frozenset[int], expected: frozenset[int] | None) -> None:
    assert suppressed_cpus(allowed, EIGHT, pinned, old) == expected


def test_no_cpu_at_all_changes_nothing() -> None:
    assert suppressed_cpus(1000, [], Pinned(), cpus()) is None


@given(st.integers(-5000, 20_000), st.frozensets(st.integers(0, 7)), st.frozensets(st.integers(0, 7)))
def test_best_effort_never_gets_a_closed_cpu(allowed: int, lse: frozenset[int], lsr: frozenset[int]) -> None:
    chosen = suppressed_cpus(allowed, EIGHT, Pinned(lse=lse, lsr=lsr), cpus(*range(8)))
    assert chosen is None or (chosen and not chosen & lse)


def test_best_effort_that_is_not_held_back_has_all_but_closed_cpus() -> None:
    pinned = Pinned(lse=cpus(1), lsr=cpus(2), reserved=cpus(3), system=cpus(0))
    assert recovered_cpus(cpus(*range(6)), pinned) == cpus(2, 4, 5)
