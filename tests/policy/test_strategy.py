"""Strategies laid over each other: the order of listing counts nothing, the highest that says a field has the word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import NodeStrategy
from j10ce.model.parts.sections import (
    CacheSection,
    CpuOverlay,
    CpuSection,
    MemoryOverlay,
    MemorySection,
    ProfileOverlay,
)
from j10ce.model.parts.strategy import LawSection, OvercommitSection, Strategy
from j10ce.policy.overcommit import DEFAULT, Law, OvercommitStrategy, adjusted
from j10ce.policy.strategy import EffectiveStrategy, effective, fields, merged, rows
from j10ce.testing.build import selector, strategy

# Fields of every shape: scalars, nested ones, a list, a map of sections; and pairs that may contradict each other.
SAID: dict[str, st.SearchStrategy[Any]] = {
    "suppress.mode": st.sampled_from(["auto", "quota"]),
    "suppress.thresholdPercent": st.integers(0, 100),
    "burst.period": st.sampled_from(["30s", "1m"]),
    "profiles.be.cpu.weight": st.integers(1, 9),
    "profiles.be.memory.oomGroup": st.booleans(),
    "profiles.ls.cache.llcEndPercent": st.integers(1, 100),
    "eviction.memory.thresholdPercent": st.integers(0, 4),
    "eviction.memory.lowerPercent": st.integers(0, 4),
    "eviction.cpu.satisfactionLowerPercent": st.integers(0, 4),
    "eviction.cpu.satisfactionUpperPercent": st.integers(0, 4),
    "hostApplications": st.sampled_from([[{"name": "a", "cgroup": "x"}], [{"name": "b", "cgroup": "y/z"}]]),
    "overcommit.difference": st.floats(0.1, 1),
}
LABELS = {"zone": "a"}


@st.composite
def said(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for path in draw(st.sets(st.sampled_from(sorted(SAID)))):
        *above, last = path.split(".")
        here = spec
        for step in above:
            here = here.setdefault(step, {})
        here[last] = draw(SAID[path])
    return spec


@st.composite
def several(draw: st.DrawFn) -> list[NodeStrategy]:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=5))
    made = [strategy(name, draw(said()), priority=draw(st.integers(0, 2))) for name in names]
    selectors = st.sampled_from([UNSET, selector({"zone": "a"}), selector({"zone": "b"})])
    return [replace(s, spec=replace(s.spec, node_selector=draw(selectors))) for s in made]


def own(s: NodeStrategy) -> dict[str, Any]:
    """What one of them says, by path."""
    return dict(fields(merged([s]).strategy)) | dict.fromkeys(merged([s]).left_out)


def selecting(strategies: list[NodeStrategy]) -> list[NodeStrategy]:
    wanted = (UNSET, selector(LABELS))
    return [s for s in strategies if s.spec.node_selector in wanted]


@given(several().flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))))
def test_the_order_in_which_strategies_are_listed_changes_nothing(
    both: tuple[list[NodeStrategy], list[NodeStrategy]],
) -> None:
    assert effective(both[0], LABELS) == effective(both[1], LABELS)


@given(several())
def test_a_field_is_said_by_the_highest_that_says_it(strategies: list[NodeStrategy]) -> None:
    made = effective(strategies, LABELS)
    highest_first = sorted(selecting(strategies), key=lambda s: (-s.spec.priority, s.metadata.name))
    whose = {**made.origins, **{path: out.origin for path, out in made.left_out.items()}}
    for path, origin in whose.items():
        first = next(s for s in highest_first if path in own(s))
        assert origin == f"NodeStrategy/{first.metadata.name}"
        if path in made.origins:
            assert dict(fields(made.strategy))[path] == dict(fields(first.spec))[path]


@given(several())
def test_what_nobody_says_stays_unsaid(strategies: list[NodeStrategy]) -> None:
    made = effective(strategies, LABELS)
    spoken = {path for s in selecting(strategies) for path in own(s)}
    assert {path for path, _ in fields(made.strategy)} == set(made.origins)
    assert made.origins.keys() | made.left_out.keys() == spoken
    assert not made.origins.keys() & made.left_out.keys()


@given(several())
def test_what_is_in_force_never_contradicts_itself(strategies: list[NodeStrategy]) -> None:
    memory, cpu = (effective(strategies, LABELS).strategy.eviction.memory, effective(strategies, LABELS).strategy)
    if memory.lower_percent is not UNSET and memory.threshold_percent is not UNSET:
        assert memory.lower_percent < memory.threshold_percent
    low, high = cpu.eviction.cpu.satisfaction_lower_percent, cpu.eviction.cpu.satisfaction_upper_percent
    assert low is UNSET or high is UNSET or low <= high


def test_sections_merge_and_lists_are_replaced() -> None:
    low = {
        "suppress": {"mode": "quota", "thresholdPercent": 60},
        "profiles": {"be": {"cpu": {"weight": 3}}, "ls": {"cpu": {"weight": 7}}},
        "hostApplications": [{"name": "a", "cgroup": "x"}, {"name": "b", "cgroup": "y"}],
    }
    high = {
        "suppress": {"thresholdPercent": 80},
        "profiles": {"be": {"memory": {"minPercent": 5}}},
        "hostApplications": [{"name": "c", "cgroup": "z"}],
    }
    made = merged([strategy("high", high, priority=1), strategy("low", low)])
    assert (made.strategy.suppress.mode, made.strategy.suppress.threshold_percent) == ("quota", 80)
    be = ProfileOverlay(cpu=CpuOverlay(weight=3), memory=MemoryOverlay(min_percent=5))
    assert made.strategy.profiles == {"be": be, "ls": ProfileOverlay(cpu=CpuOverlay(weight=7))}
    assert [a.name for a in made.strategy.host_applications] == ["c"]
    assert made.origins == {
        "suppress.mode": "NodeStrategy/low",
        "suppress.thresholdPercent": "NodeStrategy/high",
        "profiles.be.cpu.weight": "NodeStrategy/low",
        "profiles.be.memory.minPercent": "NodeStrategy/high",
        "profiles.ls.cpu.weight": "NodeStrategy/low",
        "hostApplications": "NodeStrategy/high",
    }


def test_among_equals_the_first_name_has_the_word() -> None:
    made = merged([strategy(name, {"burst": {"policy": policy}}) for name, policy in (("b", "none"), ("a", "auto"))])
    assert made.strategy.burst.policy == "auto"


def test_false_and_zero_are_said() -> None:
    low = strategy("low", {"profiles": {"be": {"cpu": {"idle": True}}}, "suppress": {"minPercent": 5}})
    high = strategy("high", {"profiles": {"be": {"cpu": {"idle": False}}}, "suppress": {"minPercent": 0}}, priority=1)
    made = merged([low, high]).strategy
    assert made.profiles["be"].cpu.idle is False
    assert made.suppress.min_percent == 0


@pytest.mark.parametrize(
    ("upper", "gone"), [("lowerPercent", "thresholdPercent"), ("thresholdPercent", "lowerPercent")]
)
def test_of_two_that_contradict_each_other_the_lower_gives_way_and_says_why(upper: str, gone: str) -> None:
    values = {"lowerPercent": 80, "thresholdPercent": 70}
    low = strategy("low", {"eviction": {"memory": {gone: values[gone]}}})
    high = strategy("high", {"eviction": {"memory": {upper: values[upper]}}}, priority=1)
    made = merged([low, high])
    assert made.origins == {f"eviction.memory.{upper}": "NodeStrategy/high"}
    out = made.left_out[f"eviction.memory.{gone}"]
    assert out.origin == "NodeStrategy/low"
    assert "lowerPercent 80" in out.why
    assert "thresholdPercent 70" in out.why
    assert rows(made)[-1][:2] == (f"eviction.memory.{gone}", f"left out: {out.why}")


def test_without_strategies_nothing_is_said() -> None:
    assert effective([], LABELS) == EffectiveStrategy(Strategy(), {}, {})
    assert effective(
        [strategy("a", {"suppress": {"mode": "auto"}}, nodeSelector={"matchLabels": {"x": "y"}})], LABELS
    ) == (EffectiveStrategy(Strategy(), {}, {}))


@pytest.mark.parametrize(
    ("overlay", "section"),
    [
        (CpuOverlay, CpuSection),
        (MemoryOverlay, MemorySection),
        (ProfileOverlay().cache.__class__, CacheSection),
        (LawSection, Law),
        (OvercommitSection, OvercommitStrategy),
    ],
)
def test_an_overlay_has_every_field_of_what_it_lies_over(overlay: Any, section: Any) -> None:
    assert overlay.__struct_encode_fields__ == section.__struct_encode_fields__


def test_overcommit_is_adjusted_field_by_field() -> None:
    section = strategy(
        "a", {"overcommit": {"cpu": {"by": "request", "midPercent": 0}, "degrade": "1h"}}
    ).spec.overcommit
    made = adjusted(DEFAULT, section)
    assert (made.cpu.by, made.cpu.mid_percent, made.cpu.threshold_percent) == ("request", 0, 60)
    assert made.degrade.seconds == 3600
    assert made.memory == DEFAULT.memory
