"""The reclaimable amounts of a node: known cases, and what holds for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from j10ce.model.quantity import Duration, Quantity
from j10ce.policy.overcommit import (
    DEFAULT,
    Inputs,
    Law,
    OvercommitStrategy,
    ZoneTerms,
    batch,
    degraded,
    mid,
    reclaimable,
    reclaimable_zones,
    results,
    total,
    worth_telling,
)

G = 10**9
# One node of 100 CPUs and 120 GB; its protected workloads use 33 CPUs (11 and 22) and ask for 40 (20 and 20).
CPU = Inputs(100_000, system=7_000, usage=33_000, request=40_000, larger=42_000)
MEMORY = Inputs(120 * G, system=12 * G, usage=33 * G, request=60 * G, larger=62 * G)


@pytest.mark.parametrize(
    ("law", "given", "expected"),
    [
        pytest.param(Law(threshold_percent=65), CPU, 25_000, id="cpu by usage"),
        pytest.param(Law(threshold_percent=65), MEMORY, 33 * G, id="memory by usage"),
        pytest.param(Law(threshold_percent=65), CPU._replace(headroom=2_000), 25_000, id="headroom below the system"),
        pytest.param(Law(threshold_percent=65), CPU._replace(headroom=20_000), 12_000, id="headroom above the system"),
        pytest.param(Law(threshold_percent=70), CPU, 30_000, id="another threshold"),
        pytest.param(Law(threshold_percent=80, by="request"), MEMORY, 36 * G, id="memory by request, system left out"),
        pytest.param(Law(threshold_percent=70, by="maxUsageRequest"), CPU, 21_000, id="the larger of both"),
        pytest.param(Law(threshold_percent=150, by="maxUsageRequest"), CPU, 101_000, id="more than there is"),
        pytest.param(Law(threshold_percent=120, by="request"), MEMORY, 84 * G, id="more memory than there is"),
        pytest.param(
            Law(threshold_percent=150, by="maxUsageRequest", batch_percent=100), CPU, 100_000, id="capped at all of it"
        ),
        pytest.param(Law(threshold_percent=65), CPU._replace(usage=38_000), 20_000, id="exclusive CPUs count whole"),
        pytest.param(Law(threshold_percent=65), CPU._replace(withheld=5_000), 20_000, id="unused units are not lent"),
        pytest.param(Law(threshold_percent=30), CPU, 0, id="never below nothing"),
        pytest.param(Law(threshold_percent=65), CPU._replace(worth=1.2), 30_000, id="faster CPUs are worth more"),
    ],
)
def test_batch(law: Law, given: Inputs, expected: int) -> None:
    assert total(batch(law, given)) == expected


@pytest.mark.parametrize(
    ("law", "given", "expected"),
    [
        pytest.param(Law(), Inputs(100_000, node_usage=30_000, request=20_000), 0, id="no prediction"),
        pytest.param(
            Law(safety_percent=0),
            Inputs(100_000, node_usage=30_000, request=40_000, peak=10_000, spare=8_000),
            8_000,
            id="no more than each leaves by itself",
        ),
        pytest.param(Law(mid_static_percent=20), Inputs(100_000), 20_000, id="a fixed share needs no prediction"),
        pytest.param(Law(mid_static_percent=20, mid_percent=10), Inputs(100_000), 10_000, id="nor is it above the cap"),
        pytest.param(
            Law(safety_percent=0), Inputs(100_000, node_usage=90_000, request=20_000, peak=0), 10_000, id="in use"
        ),
        pytest.param(
            Law(safety_percent=0),
            Inputs(100_000, node_usage=30_000, request=60_000, peak=40_000),
            20_000,
            id="promised",
        ),
        pytest.param(Law(), Inputs(100_000, node_usage=30_000, request=60_000, peak=40_000), 16_000, id="and safety"),
        pytest.param(
            Law(mid_percent=10), Inputs(100_000, node_usage=0, request=60_000, peak=10_000), 10_000, id="capped"
        ),
        pytest.param(Law(), Inputs(100_000, node_usage=0, request=10_000, peak=40_000), 0, id="uses more than asked"),
        pytest.param(Law(), Inputs(100_000, request=60_000, peak=10_000), 0, id="use unknown"),
        pytest.param(
            Law(mid_unallocated_percent=50),
            Inputs(100_000, headroom=10_000, node_usage=0, request=30_000, peak=10_000),
            19_000 + 30_000,
            id="a share of what nobody was promised",
        ),
        pytest.param(
            Law(mid_unallocated_percent=100),
            Inputs(100_000, node_usage=0, request=30_000, peak=10_000, withheld=40_000),
            49_000,
            id="not what units hold",
        ),
    ],
)
def test_mid(law: Law, given: Inputs, expected: int) -> None:
    assert total(mid(law, given)) == expected


amount = st.integers(0, 10**6)
laws = st.builds(
    Law,
    threshold_percent=st.integers(0, 200),
    by=st.sampled_from(["usage", "request", "maxUsageRequest"]),
    batch_percent=st.integers(0, 200),
    mid_percent=st.integers(0, 100),
    mid_unallocated_percent=st.integers(0, 100),
    mid_static_percent=st.just(UNSET) | st.integers(0, 100),
    safety_percent=st.integers(0, 100),
)
nodes = st.builds(
    Inputs,
    amount,
    amount,
    st.none() | amount,
    amount,
    amount,
    amount,
    amount,
    st.none() | amount,
    amount,
    st.none() | amount,
    st.floats(1, 5),
)


@given(laws, nodes)
def test_nothing_is_ever_negative(law: Law, node: Inputs) -> None:
    assert total(batch(law, node)) >= 0
    assert total(mid(law, node)) >= 0
    assert total(mid(law, node)) <= node.capacity
    assert all(term.amount >= 0 for term in (*batch(law, node), *mid(law, node)))


@given(laws, nodes, st.sampled_from(["usage", "larger", "system", "headroom", "withheld"]), amount)
def test_more_use_never_lends_more(law: Law, node: Inputs, grows: str, by: int) -> None:
    busier = node._replace(**{grows: getattr(node, grows) + by})
    assert total(batch(law, busier)) <= total(batch(law, node))


@given(laws, nodes, amount)
def test_a_higher_peak_never_lends_more(law: Law, node: Inputs, by: int) -> None:
    calm, busy = (node._replace(peak=(node.peak or 0) + more) for more in (0, by))
    assert total(mid(law, busy)) <= total(mid(law, calm))


@given(st.builds(OvercommitStrategy, cpu=laws, memory=laws), nodes, nodes)
def test_the_terms_add_up_to_the_result(strategy: OvercommitStrategy, cpu: Inputs, memory: Inputs) -> None:
    amounts = results(reclaimable(strategy, {"cpu": cpu, "memory": memory}))
    assert amounts["batch-cpu"].millicores() == total(batch(strategy.cpu, cpu))
    assert amounts["mid-memory"].bytes() == total(mid(strategy.memory, memory))
    assert set(amounts) == {"batch-cpu", "batch-memory", "mid-cpu", "mid-memory"}


# -- when it is written


def amounts_of(cpu: str) -> dict[str, Quantity]:
    return {"batch-cpu": Quantity.parse(cpu)}


@pytest.mark.parametrize(
    ("old", "new", "age_s", "expected"),
    [
        pytest.param(amounts_of("10"), amounts_of("10"), 10**6, False, id="the same is never written again"),
        pytest.param(amounts_of("10"), amounts_of("11"), 0, False, id="ten percent are not worth telling"),
        pytest.param(amounts_of("10"), amounts_of("11001m"), 0, True, id="a little more is"),
        pytest.param(amounts_of("10"), amounts_of("8"), 0, True, id="a fall is"),
        pytest.param(amounts_of("10"), amounts_of("10500m"), 300, True, id="a drift is, when the last word is old"),
        pytest.param(amounts_of("0"), amounts_of("1m"), 0, True, id="anything is more than nothing"),
        pytest.param({}, amounts_of("0"), 0, True, id="the first word"),
    ],
)
def test_hysteresis(old: dict[str, Quantity], new: dict[str, Quantity], age_s: float, expected: bool) -> None:
    assert worth_telling(old, new, DEFAULT, age_s) is expected


@given(st.lists(st.integers(9_100, 10_900), min_size=1))
def test_what_swings_within_the_band_is_reported_once(samples: list[int]) -> None:
    published, words = amounts_of("10"), 0
    for n in samples:
        fresh = {"batch-cpu": Quantity.parse(f"{n}m")}
        if worth_telling(published, fresh, DEFAULT, 0):
            published, words = fresh, words + 1
    assert words == 0


def test_a_silent_node_lends_nothing_and_says_since_when() -> None:
    terms = degraded(OvercommitStrategy(degrade=Duration(900)), 960.0, ["batch-cpu"])
    assert results(terms) == amounts_of("0")
    assert terms[0].why == "no report for 960 s, more than 15m"


def zoned(law: Law, i: Inputs, **zones: ZoneTerms) -> dict[str, int]:
    strategy = OvercommitStrategy(cpu=law)
    made = reclaimable_zones(strategy, {"cpu": i}, {zone: {"cpu": bound} for zone, bound in zones.items()})
    return {zone: amounts["batch-cpu"].millicores() for zone, amounts in made.items()}


@pytest.mark.parametrize(
    ("law", "first", "second"),
    [
        # 50 − margin 17.5 − half of the system 3.5 − half of what is bound nowhere − what is bound here
        pytest.param(Law(threshold_percent=65), 10_000, 15_000, id="by usage: 28 bound nowhere, 5 in one"),
        pytest.param(Law(threshold_percent=65, by="maxUsageRequest"), 3_000, 13_000, id="the larger: 32 and 10"),
        pytest.param(Law(threshold_percent=65, batch_percent=25), 10_000, 12_500, id="capped by its own capacity"),
        pytest.param(Law(threshold_percent=30), 0, 0, id="never below nothing"),
    ],
)
def test_who_is_bound_to_a_memory_node_counts_there_and_all_others_in_all_alike(
    law: Law, first: int, second: int
) -> None:
    bound = ZoneTerms(50_000, usage=5_000, request=10_000, larger=10_000)
    assert zoned(law, CPU, a=bound, b=ZoneTerms(50_000)) == {"a": first, "b": second}


@given(
    st.integers(0, 100_000),
    st.lists(st.tuples(st.integers(1, 100_000), st.integers(0, 30_000)), min_size=1, max_size=8),
)
def test_memory_nodes_lend_no_more_than_the_machine_unless_one_of_them_has_nothing_left(
    usage: int, parts: list[tuple[int, int]]
) -> None:
    zones = {f"{n}": ZoneTerms(capacity, usage=use) for n, (capacity, use) in enumerate(parts)}
    i = Inputs(sum(capacity for capacity, _ in parts), usage=max(usage, sum(use for _, use in parts)))
    each = zoned(Law(), i, **zones)
    assert all(0 <= amount <= zones[zone].capacity for zone, amount in each.items())
    assert min(each.values()) == 0 or sum(each.values()) <= total(batch(Law(), i))


def test_a_memory_node_of_which_a_resource_is_not_known_lends_none_of_it() -> None:
    zones = {"0": {"cpu": ZoneTerms(50_000), "memory": ZoneTerms(60 * G)}, "1": {"cpu": ZoneTerms(50_000)}}
    made = reclaimable_zones(DEFAULT, {"cpu": CPU, "memory": MEMORY}, zones)
    assert {zone: [*amounts] for zone, amounts in made.items()} == {"0": ["batch-cpu"], "1": ["batch-cpu"]}
