"""Memory QoS: protection, throttling, page cache, what a pod may say about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from j10ce.dialects.koordinator.annotations.pod import MemoryWish
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.qos import MemoryFields
from j10ce.model.workload import NativeClass
from tests.koordinator.theirs.laws.memory import (
    Machine,
    Memory,
    PodProtection,
    class_defaults,
    class_values,
    container_values,
    merged,
    neutral,
    pod_values,
)
from tests.koordinator.theirs.laws.page_cache import page_cache_limit

MIB = 2**20
MOST = 2**63 - 1
MACHINE = Machine(allocatable=1000 * MIB)


def fields(**said: int) -> MemoryFields:
    return MemoryFields(**{**asdict(neutral()), **said})


@pytest.mark.parametrize(
    ("said", "memory", "least", "low", "high"),
    [
        pytest.param({}, Memory(100, 200), 0, 0, MOST, id="nothing"),
        pytest.param({"min_limit_percent": 50}, Memory(101, 200), 50, 0, MOST, id="half of the request"),
        pytest.param({"min_limit_percent": 50, "low_limit_percent": 30}, Memory(100), 50, 50, MOST, id="low below min"),
        pytest.param({"min_limit_percent": 50, "low_limit_percent": 80}, Memory(100), 50, 80, MOST, id="low above min"),
        pytest.param(
            {"throttling_percent": 50}, Memory(100 * MIB, 200 * MIB), 0, 0, 150 * MIB, id="half way to the limit"
        ),
        pytest.param({"throttling_percent": 80}, Memory(), 0, 0, 800 * MIB, id="no limit: half way to the node's"),
        pytest.param({"throttling_percent": 1}, Memory(1, 4097), 0, 0, 0, id="whole pages"),
        pytest.param(
            {"throttling_percent": 1, "min_limit_percent": 100}, Memory(5000, 6000), 5000, 0, 5000, id="never below min"
        ),
    ],
)
def test_a_container(said: dict[str, int], memory: Memory, least: int, low: int, high: int) -> None:
    values = container_values(fields(**said), memory, MACHINE)
    assert (values["memory.min"], values["memory.low"], values["memory.high"]) == (least, low, high)


def test_watermarks_and_priorities_are_written_as_they_are_configured() -> None:
    said = fields(
        wmark_ratio=95, wmark_scale_permill=20, wmark_min_adj=-25, priority_enable=1, priority=3, oom_kill_group=1
    )
    values = container_values(said, Memory(), MACHINE)
    assert {
        name: value for name, value in values.items() if name not in ("memory.min", "memory.low", "memory.high")
    } == {
        "memory.wmark_ratio": 95,
        "memory.wmark_scale_factor": 20,
        "memory.wmark_min_adj": -25,
        "memory.priority": 3,
        "memory.use_priority_oom": 1,
        "memory.oom.group": 1,
    }


def test_a_pod_has_the_sums_of_its_containers_and_no_memory_high() -> None:
    values = pod_values(fields(min_limit_percent=50, throttling_percent=50), [Memory(101), Memory(101, 5)], MACHINE)
    assert values["memory.min"] == 101
    assert "memory.high" not in values


def test_directories_have_the_sums_of_their_pods_and_no_watermarks() -> None:
    said = fields(min_limit_percent=100, low_limit_percent=40, priority=2, wmark_ratio=95)

    def pod(native: NativeClass, request: int) -> PodProtection:
        return PodProtection(native, said, request)

    done = class_values([pod("Burstable", 10), pod("Burstable", 5), pod("Guaranteed", 7)], {"burstable": said})
    assert done == {
        "kubepods": {"memory.min": 22, "memory.low": 8},
        "burstable": {
            "memory.min": 15,
            "memory.low": 6,
            "memory.priority": 2,
            "memory.use_priority_oom": 0,
            "memory.oom.group": 0,
        },
    }
    assert class_values([], {"burstable": said}) == {}


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 2**40), st.integers(0, 2**40))
def test_protection_is_below_the_request_and_throttling_above_protection(
    least: int, low: int, throttling: int, request: int, more: int
) -> None:
    said = fields(min_limit_percent=least, low_limit_percent=low, throttling_percent=throttling)
    values = container_values(said, Memory(request, request + more), MACHINE)
    assert values["memory.min"] <= max(values["memory.low"], values["memory.min"]) <= request
    assert values["memory.min"] <= values["memory.high"]
    assert values["memory.high"] == MOST or values["memory.high"] <= max(request + more, values["memory.min"])


@pytest.mark.parametrize(
    ("wish", "ratio", "scale"),
    [
        pytest.param(None, 70, 50, id="no annotation: the node's strategy"),
        pytest.param(MemoryWish(), 70, 50, id="no policy: the node's"),
        pytest.param(MemoryWish(policy="default"), 70, 50, id="default: the node's"),
        pytest.param(MemoryWish(policy="none"), 0, 50, id="none: neutral"),
        pytest.param(MemoryWish(policy="auto"), 95, 20, id="auto: of the class"),
        pytest.param(MemoryWish(policy="none", wmark_ratio=60), 0, 50, id="none: nothing else is read"),
        pytest.param(MemoryWish(policy="default", wmark_ratio=60), 60, 50, id="a field that is named"),
        pytest.param(MemoryWish(policy="auto", wmark_scale_permill=1), 95, 1, id="another"),
    ],
)
def test_what_a_pod_says_lies_over_its_policy(wish: MemoryWish | None, ratio: int, scale: int) -> None:
    done = merged(KoordClass.BE, "BestEffort", fields(wmark_ratio=70), wish)
    assert (done.wmark_ratio, done.wmark_scale_permill) == (ratio, scale)


@pytest.mark.parametrize(
    ("koord", "native", "adjust"),
    [("LSE", "Guaranteed", -25), ("LSR", "Guaranteed", -25), ("LS", "Burstable", -25), ("BE", "BestEffort", 50),
     ("SYSTEM", "Burstable", 0), ("", "BestEffort", 50), ("", "Burstable", -25)],
)  # fmt: skip
def test_auto_means_the_defaults_of_the_class(koord: str, native: NativeClass, adjust: int) -> None:
    assert merged(KoordClass(koord), native, neutral(), MemoryWish(policy="auto")).wmark_min_adj == adjust


def test_the_defaults_of_classes() -> None:
    assert class_defaults(KoordClass.LSR).wmark_ratio == 95
    assert class_defaults(KoordClass.SYSTEM).wmark_ratio == 0


ENABLE, SIZE, SYNC = (f"memory.pagecache_limit.{name}" for name in ("enable", "size", "sync"))


@pytest.mark.parametrize(
    ("said", "limit", "expected"),
    [
        pytest.param({}, 1000, {}, id="nothing"),
        pytest.param({"page_cache_limit_size": 400}, 1000, {ENABLE: 1, SIZE: 400}, id="a size"),
        pytest.param({"page_cache_limit_size": 4000}, 1000, {ENABLE: 1, SIZE: 1000}, id="at most the limit"),
        pytest.param({"page_cache_limit_size": 4000}, None, {ENABLE: 1, SIZE: 4000}, id="no limit"),
        pytest.param({"page_cache_limit_size": 0}, 1000, {ENABLE: 0, SIZE: 0}, id="none switches it off"),
        pytest.param({"page_cache_limit_percent": 50}, 1000, {ENABLE: 1, SIZE: 500}, id="a part"),
        pytest.param({"page_cache_limit_percent": 50}, None, {}, id="a part of no limit"),
        pytest.param(
            {"page_cache_limit_percent": 50, "page_cache_limit_size": 10}, 1000, {ENABLE: 1, SIZE: 10}, id="size wins"
        ),
        pytest.param(
            {"page_cache_limit_size": 10, "page_cache_enable": False}, 1000, {ENABLE: 0, SIZE: 10}, id="the switch wins"
        ),
        pytest.param({"page_cache_enable": True, "page_cache_reclaim_sync": True}, 9, {ENABLE: 1, SYNC: 1}, id="sync"),
    ],
)
def test_page_cache(said: dict[str, int], limit: int | None, expected: dict[str, int]) -> None:
    assert page_cache_limit(MemoryFields(**said), limit, 2) == expected
    assert page_cache_limit(MemoryFields(**said), limit, 1) == {}
