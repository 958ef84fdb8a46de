"""What a container gets when it starts: batch amounts, CPUs, normalised quota; and its part of cache and bandwidth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.annotations.node import SharePool
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.ratios import CpuNormalization
from j10ce.errors import Invalid
from j10ce.model.workload import NativeClass
from tests.koordinator.theirs.laws.resctrl import l3_mask, mba_value, pod_group, schemata
from tests.koordinator.theirs.laws.runtime import (
    Extended,
    NodeCpus,
    container_cpus,
    extended_values,
    normalisation_ratio,
    normalised,
    ratio_text,
)

GIB = 2**30
WHOLE = Extended(500, 1000, GIB, 2 * GIB)


def values(shares: int, quota: int, memory: int) -> dict[str, int]:
    return {"cpu.shares": shares, "cpu.cfs_quota_us": quota, "memory.limit_in_bytes": memory}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([WHOLE], values(512, 100_000, 2 * GIB), id="one"),
        pytest.param([WHOLE, WHOLE], values(1024, 200_000, 4 * GIB), id="two"),
        pytest.param([WHOLE, Extended(500)], values(1024, -1, -1), id="one without limits"),
        pytest.param([WHOLE, Extended(500, 500)], values(1024, 150_000, -1), id="one without a limit of memory"),
        pytest.param([Extended(limit_milli=5)], values(2, 1000, -1), id="the least that a kernel takes"),
        pytest.param([Extended()], {}, id="nothing of batch"),
        pytest.param([], {}, id="no container"),
    ],
)
def test_batch_amounts(containers: list[Extended], expected: dict[str, int]) -> None:
    assert extended_values(containers) == expected


def test_where_the_directory_has_the_quota_pods_have_none() -> None:
    assert extended_values([WHOLE], quotas=False) == values(512, -1, 2 * GIB)


def test_faster_cpus_need_less_time() -> None:
    assert extended_values([WHOLE], ratio=1.5)["cpu.cfs_quota_us"] == 66_667


@pytest.mark.parametrize(
    ("quota", "ratio", "expected"), [(60_000, 1.2, 50_000), (50_000, 1.2, 41_667), (50_000, 1.0, 50_000), (-1, 2.0, -1)]
)
def test_a_quota_is_divided_and_rounded_up(quota: int, ratio: float, expected: int) -> None:
    assert normalised(quota, ratio) == expected


MODEL = {"X": {"baseRatio": 1.1, "hyperThreadEnabledRatio": 1.2, "turboEnabledRatio": 1.3}}


@pytest.mark.parametrize(
    ("hyper_thread", "turbo", "expected"),
    [(False, False, 1.1), (True, False, 1.2), (False, True, 1.3), (True, True, 1.9)],
)
def test_a_ratio_by_model_and_state_and_the_default_where_it_is_missing(
    hyper_thread: bool, turbo: bool, expected: float
) -> None:
    strategy = CpuNormalization(ratio_model=MODEL, default_ratio=1.9)
    assert normalisation_ratio(strategy, "X", hyper_thread=hyper_thread, turbo=turbo) == expected


@pytest.mark.parametrize(
    "strategy", [CpuNormalization(), CpuNormalization(ratio_model=MODEL), CpuNormalization(default_ratio=5.5)]
)
def test_no_ratio_or_one_out_of_range_is_refused(strategy: CpuNormalization) -> None:
    with pytest.raises(Invalid):
        normalisation_ratio(strategy, "Y", hyper_thread=True, turbo=True)


def test_a_ratio_is_told_with_two_digits() -> None:
    assert (ratio_text(1.5), ratio_text(1.5, enabled=False)) == ("1.50", "1.00")


POOLS = (SharePool(node=0, cpuset="0-5"), SharePool(node=1, cpuset="8-13"))
NODE = NodeCpus(POOLS, (SharePool(node=1, cpuset="12-13"),), "14-15")
STATIC = NODE._replace(kubelet_static=True)


@pytest.mark.parametrize(
    ("node", "koord", "native", "assigned", "numa", "expected"),
    [
        pytest.param(NODE, "LSR", "Guaranteed", "6-7", (), "6-7", id="CPUs of its own"),
        pytest.param(STATIC, "LSE", "Guaranteed", "6-7", (), "6-7", id="CPUs of its own, whatever the kubelet does"),
        pytest.param(NODE, "LS", "Burstable", "6-7", (), "0-5,8-13", id="LS has none of its own"),
        pytest.param(NODE, "LS", "Burstable", "", (1,), "8-13", id="the pool of its NUMA node"),
        pytest.param(NODE, "BE", "BestEffort", "", (1,), "8-13", id="best effort, too"),
        pytest.param(NODE._replace(be_manager=True), "BE", "BestEffort", "", (1,), "12-13", id="a pool of best effort"),
        pytest.param(NODE, "LS", "Burstable", "", (), "0-5,8-13", id="all pools"),
        pytest.param(STATIC, "LS", "Burstable", "", (), "0-5,8-13", id="all pools beside a static kubelet"),
        pytest.param(NODE, "", "Burstable", "", (), "0-5,8-13", id="no class"),
        pytest.param(STATIC, "", "Burstable", "", (), None, id="no class, and a static kubelet"),
        pytest.param(STATIC, "", "BestEffort", "", (), "", id="best effort inherits"),
        pytest.param(NODE, "BE", "BestEffort", "", (), "", id="class BE inherits"),
        pytest.param(NODE, "SYSTEM", "Burstable", "", (), "14-15", id="system"),
        pytest.param(NODE._replace(system=""), "SYSTEM", "Burstable", "", (), "0-5,8-13", id="system without CPUs"),
        pytest.param(STATIC._replace(system=""), "SYSTEM", "Burstable", "", (), None, id="the same, static kubelet"),
        pytest.param(NODE._replace(system=""), "SYSTEM", "BestEffort", "", (), "", id="the same, of best effort"),
        pytest.param(NODE, "BE", "Burstable", "", (), "0-5,8-13", id="class BE among burstable pods"),
        pytest.param(STATIC, "BE", "Burstable", "", (), None, id="the same beside a static kubelet"),
        pytest.param(NODE, "LSR", "Guaranteed", "", (), "0-5,8-13", id="no CPUs were assigned yet"),
    ],
)
def test_the_cpus_of_a_container(
    node: NodeCpus, koord: str, native: NativeClass, assigned: str, numa: tuple[int, ...], expected: str | None
) -> None:
    done = container_cpus(node, KoordClass(koord), native, assigned, numa)
    assert done.cpus == expected
    assert done.unlimited == (expected == "6-7")


def test_cpus_that_are_none_are_refused() -> None:
    with pytest.raises(Invalid, match="cpuset"):
        container_cpus(NODE, KoordClass.LSR, "Guaranteed", "six")


@pytest.mark.parametrize(
    ("cbm", "start", "end", "expected"),
    [
        (0xFFF, 0, 100, "fff"), (0xFFF, 0, 30, "f"), (0xFFF, 50, 100, "fc0"), (0x7FF, 10, 50, "3c"), (1, 0, 1, "1"),
        (0xFFFFF, 99, 100, "0"), (0xFF, 10, 12, "0"), (0xFF, 12, 13, "2"),
    ],
)  # fmt: skip
def test_cache_ways(cbm: int, start: int, end: int, expected: str) -> None:
    assert l3_mask(cbm, start, end) == expected


@pytest.mark.parametrize(
    ("cbm", "start", "end"), [(0, 0, 100), (0x101, 0, 100), (6, 0, 100), (7, 50, 50), (7, 0, 101), (7, -1, 9)]
)
def test_a_mask_with_holes_or_a_range_of_nothing_is_refused(cbm: int, start: int, end: int) -> None:
    with pytest.raises(Invalid):
        l3_mask(cbm, start, end)


@given(st.integers(1, 64), st.integers(0, 100), st.integers(0, 100))
def test_a_mask_is_contiguous_and_within_the_whole(ways: int, start: int, end: int) -> None:
    whole = (1 << ways) - 1
    try:
        mask = int(l3_mask(whole, start, end), 16)
    except Invalid:
        assert start >= end
    else:
        assert bool(mask) == (-(-ways * start // 100) < -(-ways * end // 100))
        assert mask & whole == mask
        low = mask & -mask or 1
        assert (mask // low) & (mask // low + 1) == 0


@pytest.mark.parametrize(
    ("vendor", "percent", "expected"),
    [
        ("GenuineIntel", 1, "10"), ("GenuineIntel", 50, "50"), ("GenuineIntel", 51, "60"), ("GenuineIntel", 100, "100"),
        ("AuthenticAMD", 50, "80"), ("AuthenticAMD", 99, "158"), ("AuthenticAMD", 100, "2048"),
        ("GenuineIntel", 0, ""), ("AuthenticAMD", 101, ""), ("GenuineIntel", -5, ""),
    ],
)  # fmt: skip
def test_memory_bandwidth(vendor: str, percent: int, expected: str) -> None:
    assert mba_value(vendor, percent) == expected


def test_the_lines_of_a_group_leave_out_what_is_not_to_be_set() -> None:
    assert schemata([0, 1], "f", "50") == {"L3": "L3:0=f;1=f;\n", "MB": "MB:0=50;1=50;\n"}
    assert schemata([0], "f", "") == {"L3": "L3:0=f;\n"}
    assert schemata([], "f", "50") == {}
    assert pod_group("a-b") == "koordlet-a-b"
