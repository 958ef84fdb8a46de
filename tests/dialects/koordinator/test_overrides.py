"""What a pod says in Koordinator's words changes what it gets, or is a note; it never stops the pod."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import asdict

from j10ce.dialects.koordinator.overrides import translate
from j10ce.model.kinds import ReclaimSection
from j10ce.model.quantity import Quantity
from j10ce.model.workload import MOST_ANNOTATIONS, EvictionHints, Workload, heeded, unheeded
from j10ce.policy.choose import Chooser
from j10ce.policy.entitlement.layers import layers
from j10ce.policy.profiles import builtin
from j10ce.policy.strategy import EffectiveStrategy

SHOP = {"kubernetes.io/metadata.name": "shop"}
TRUSTED = {**SHOP, "j10ce.io/trusted": "true"}
CLASS = "koordinator.sh/qosClass"


def pod(labels: dict[str, str] | None = None, trusted: bool = True, **annotations: Any) -> Workload:
    texts = {key.replace("__", "/").replace("_", "-"): _text(value) for key, value in annotations.items()}
    return Workload(
        "shop",
        "web",
        labels or {},
        TRUSTED if trusted else SHOP,
        annotations={f"{_domain(k)}": v for k, v in texts.items()},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _domain(key: str) -> str:
    return key if "/" in key else f"koordinator.sh/{key}"


@pytest.mark.parametrize(
    ("labels", "trusted", "profile", "note"),
    [
        pytest.param({CLASS: "SYSTEM"}, True, "system", "", id="system"),
        pytest.param({CLASS: "LSE"}, True, "lse", "", id="lse"),
        pytest.param({CLASS: "LSR"}, True, "lsr", "", id="lsr"),
        pytest.param({CLASS: "LS"}, False, "ls", "", id="ls of anybody"),
        pytest.param({CLASS: "BE"}, False, "be", "", id="be of anybody"),
        pytest.param({CLASS: "LSE"}, False, "ls", "'shop' may not have profile 'lse'", id="lse without trust is ls"),
        pytest.param({CLASS: "LSR"}, False, "ls", "j10ce.io/trusted=true", id="lsr without trust is ls"),
        pytest.param({CLASS: "SYSTEM"}, False, "", "'shop' may not have profile 'system'", id="system without trust"),
        pytest.param({CLASS: "LS", "j10ce.io/qos-profile": "be"}, True, "be", "", id="our own label first"),
        pytest.param({"koordinator.sh/priority-class": "koord-batch"}, False, "be", "", id="a band of what is lent"),
        pytest.param({"koordinator.sh/priority-class": "koord-prod"}, False, "", "", id="any other band"),
        pytest.param({}, True, "", "", id="no label"),
        pytest.param({CLASS: "LSX"}, True, "", "not one of the known words", id="no class"),
    ],
)
def test_its_class_chooses_the_profile(labels: dict[str, str], trusted: bool, profile: str, note: str) -> None:
    spoken = translate(pod(labels, trusted))
    choice = Chooser(builtin()).choose(spoken)
    assert (choice.profile.metadata.name if choice.profile else "") == profile
    said = " ".join((*choice.notes, *map(str, spoken.overrides.notes)))
    assert note in said if note else not said


def spoken(koord: str, **annotations: Any) -> dict[str, Any]:
    overrides = translate(pod({CLASS: koord}, True, **annotations)).overrides
    sections = overrides.sections
    every = {"cpu": sections.cpu, "memory": sections.memory, "cache": sections.cache, "burst": overrides.burst}
    silent = (UNSET, ReclaimSection())
    return {f"{k}.{n}": v for k, s in every.items() for n, v in asdict(s).items() if v not in silent}


@pytest.mark.parametrize(
    ("annotations", "fields"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"memoryQOS": {"policy": "auto", "minLimitPercent": 40, "lowLimitPercent": 20, "throttlingPercent": 80}},
            {
                "memory.min_percent": 40,
                "memory.low_percent": 40,
                "memory.throttling_percent": 80,
                "memory.watermark_percent": 95,
            },
            id="memory: low is at least min, and auto has a watermark",
        ),
        pytest.param(
            {"memoryQOS": {"policy": "none"}},
            {
                "memory.min_percent": 0,
                "memory.low_percent": 0,
                "memory.throttling_percent": 100,
                "memory.watermark_percent": 0,
            },
            id="memory: none is off",
        ),
        pytest.param(
            {"memoryQOS": {"policy": "none", "minLimitPercent": 40}},
            {
                "memory.min_percent": 0,
                "memory.low_percent": 0,
                "memory.throttling_percent": 100,
                "memory.watermark_percent": 0,
            },
            id="memory: beside none nothing else is read",
        ),
        pytest.param(
            {"memoryQOS": {"wmarkRatio": 90, "wmarkScalePermill": 30, "wmarkMinAdj": 10}},
            {"memory.watermark_percent": 90, "memory.watermark_scale": 30, "memory.watermark_adjust": 10},
            id="watermarks",
        ),
        pytest.param(
            {"memoryQOS": {"priorityEnable": 1, "priority": 3}},
            {"memory.kernel_priority": 3, "memory.kernel_priority_oom": True},
            id="priorities",
        ),
        pytest.param(
            {"memoryQOS": {"pageCacheLimitPercent": 30, "pageCacheReclaimSync": True}},
            {"memory.page_cache_limit": "30%", "memory.page_cache_sync": True},
            id="page cache, by percent of the limit",
        ),
        pytest.param(
            {"memoryQOS": {"pageCacheLimitPercent": 30, "pageCacheLimitSize": 4096}},
            {"memory.page_cache_limit": "4Ki"},
            id="a size beats a percentage",
        ),
        pytest.param(
            {"memoryQOS": {"pageCacheEnable": False, "pageCacheLimitSize": 4096}},
            {"memory.page_cache_limit": "0"},
            id="the switch beats both",
        ),
        pytest.param({"oom_score_adj": "500"}, {"memory.oom_priority": -500}, id="who is killed first"),
        pytest.param(
            {"oom_score_adj": "500", "oom_score_adj_spec": {"a": 100, "b": 200}},
            {"memory.oom_priority": -200},
            id="containers have the last word, the first to go for all of them",
        ),
        pytest.param({"memoryQOS": {"oomKillGroup": 1}}, {"memory.oom_group": True}, id="killed as a whole"),
        pytest.param({"cpuBurst": {"policy": "none"}}, {"burst.policy": "none"}, id="no burst"),
        pytest.param({"cpuBurst": {"cpuBurstPercent": 30}}, {"burst.static_percent": 30}, id="a share of the limit"),
        pytest.param(
            {
                "cpuBurst": {
                    "policy": "cfsQuotaBurstOnly",
                    "cfsQuotaBurstPercent": 200,
                    "cfsQuotaBurstPeriodSeconds": 60,
                }
            },
            {"burst.policy": "quota", "burst.quota_percent": 200, "burst.period": "1m"},
            id="a raised quota, for a minute",
        ),
        pytest.param({"cpuQOS": {"enable": True, "groupIdentity": -1}}, {"cpu.idle": True}, id="gives way"),
        pytest.param(
            {"cpuQOS": {"enable": True, "coreExpeller": False}}, {"cpu.core_expeller": False}, id="expels nobody"
        ),
        pytest.param(
            {
                "node.koordinator.sh__resctrl": {
                    "llc": {"schemata": {"range": [0, 30]}},
                    "mb": {"schemata": {"percent": 20}},
                }
            },
            {"cache.llc_start_percent": 0, "cache.llc_end_percent": 30, "cache.memory_bandwidth_percent": 20},
            id="cache and bandwidth",
        ),
        pytest.param(
            {"scheduling.koordinator.sh__resource_spec": {"preferredCPUBindPolicy": "FullPCPUs"}},
            {"cpu.bind": "full-cores"},
            id="whole cores",
        ),
    ],
)
def test_annotations_become_fields_of_this_workload_alone(annotations: dict[str, Any], fields: dict[str, Any]) -> None:
    got = spoken("LS", **annotations)
    assert {k: v if isinstance(v, bool | int) else str(v) for k, v in got.items()} == fields


def test_every_field_names_its_annotation_in_the_entitlement() -> None:
    w = translate(pod({CLASS: "LS"}, False, memoryQOS={"lowLimitPercent": 70}))
    laid = layers(w, Chooser(builtin()).choose(w), EffectiveStrategy())
    assert laid.memory.low_percent == 70
    assert [(s.field, s.object) for s in laid.sources] == [("memory.lowPercent", "annotation koordinator.sh/memoryQOS")]


@pytest.mark.parametrize(("koord", "heeded"), [("LS", True), ("BE", False)])
def test_a_burst_names_its_annotation_and_who_has_none_hears_of_it(koord: str, heeded: bool) -> None:
    w = translate(pod({CLASS: koord}, False, cpuBurst={"policy": "auto"}))
    laid = layers(w, Chooser(builtin()).choose(w), EffectiveStrategy())
    sources = [(s.field, s.object) for s in laid.sources]
    assert sources == ([("burst.policy", "annotation koordinator.sh/cpuBurst")] if heeded else [])
    assert bool(laid.notes) is not heeded


def test_what_a_tier_cannot_have_is_said_and_left_out() -> None:
    w = translate(pod({CLASS: "LS"}, False, cpuQOS={"enable": True, "schedIdle": 1}))
    laid = layers(w, Chooser(builtin()).choose(w), EffectiveStrategy())
    assert not laid.cpu.idle
    assert "never held back" in " ".join(map(str, laid.notes))


@pytest.mark.parametrize(
    ("annotations", "note"),
    [
        pytest.param({"memoryQOS": "{"}, "koordinator.sh/memoryQOS", id="no JSON"),
        pytest.param({"memoryQOS": {"minLimitPercent": 101}}, "minLimitPercent", id="out of range"),
        pytest.param({"networkQOS": {"egressLimit": "50%"}}, "a percentage of nothing", id="network in percent"),
        pytest.param({"oom_score_adj_spec": {"a": 1, "b": 2}}, "the highest counts for all", id="score by container"),
        pytest.param(
            {"scheduling.koordinator.sh__resource_status": {"cpuset": "0-1"}}, "cpuset 0-1", id="CPUs of a scheduler"
        ),
    ],
)
def test_what_is_wrong_or_not_heeded_is_a_note(annotations: dict[str, Any], note: str) -> None:
    notes = translate(pod({CLASS: "LS"}, True, **annotations)).overrides.notes
    assert any(note in str(one) for one in notes)


def test_rates_of_one_pod_are_ceilings_in_bits() -> None:
    w = translate(pod({CLASS: "LS"}, True, networkQOS={"egressLimit": "50M", "ingressLimit": 0}))
    network = w.overrides.sections.network
    assert (network.egress.ceiling, network.ingress.ceiling) == (Quantity.parse("50M"), UNSET)
    assert w.overrides.origins["network.egress.ceiling"] == "annotation koordinator.sh/networkQOS"


def test_its_words_about_eviction_are_hints() -> None:
    labels = {CLASS: "LS", "koordinator.sh/eviction-enabled": "true", "koordinator.sh/priority": "7"}
    asked = {"eviction_policy": ["MemoryEvict", "BEMemoryEvict", "CPUAllocatableEvict"], "eviction_priority": "-5"}
    hints = translate(pod(labels, True, **asked)).overrides.eviction
    assert hints == EvictionHints(willing=True, triggers=("memory", "lent-cpu"), order=-5, rank=7)


@pytest.mark.parametrize(
    ("named", "triggers"),
    [
        pytest.param([], None, id="an empty list is any"),
        pytest.param(["memoryEvict"], (), id="a word that nobody knows is none"),
        pytest.param(["memoryEvict", "CPUEvict"], ("cpu",), id="beside one that is known"),
    ],
)
def test_a_pod_is_evicted_by_no_feature_that_it_does_not_name(named: list[str], triggers: object) -> None:
    asked = {"eviction_policy": named}
    assert translate(pod({CLASS: "BE"}, True, **asked)).overrides.eviction.triggers == triggers


def test_an_annotation_that_is_too_long_or_one_too_many_is_left_out_with_a_note() -> None:
    many = {f"j10ce.io/a{n:03}": "x" for n in range(MOST_ANNOTATIONS + 2)} | {"j10ce.io/a000": "x" * 20_000}
    notes = [str(note) for note in unheeded(many)]
    assert len(heeded(many)) == MOST_ANNOTATIONS
    assert notes == [
        "annotation j10ce.io/a000: 20000 characters, of which none counts; write at most 16384",
        "annotation j10ce.io/a065: one of 66 annotations, of which the first 64 by name count",
    ]
    assert unheeded(heeded(many)) == ()
    assert len(unheeded({f"j10ce.io/{n}": "x" * 20_000 for n in range(999)})) == MOST_ANNOTATIONS
    assert unheeded({"example.com/whatever": "x" * 20_000}) == ()


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8) | st.floats(allow_nan=False)
FIELDS = st.sampled_from(
    ["policy", "minLimitPercent", "lowLimitPercent", "throttlingPercent", "cpuBurstPercent", "enable", "groupIdentity",
     "llc", "mb", "schemata", "range", "percent", "cpuset", "priority", "schedIdle", "requiredCPUBindPolicy"]
)  # fmt: skip
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(FIELDS, v, max_size=4), max_leaves=8)
KEYS = st.sampled_from(
    ["koordinator.sh/memoryQOS", "koordinator.sh/cpuBurst", "koordinator.sh/cpuQOS", "koordinator.sh/oom-score-adj",
     "koordinator.sh/oom-score-adj-spec", "koordinator.sh/eviction-policy", "koordinator.sh/eviction-priority",
     "node.koordinator.sh/resctrl", "scheduling.koordinator.sh/resource-spec",
     "scheduling.koordinator.sh/resource-status", "koordinator.sh/networkQOS", "koordinator.sh/memoryQos"]
)  # fmt: skip
TEXTS = st.dictionaries(KEYS, VALUES.map(json.dumps) | st.text(max_size=20), max_size=4)
CLASSES = st.sampled_from(["", "SYSTEM", "LSE", "LSR", "LS", "BE", "lse"])


@given(TEXTS, CLASSES, st.booleans())
def test_whatever_is_written_the_pod_runs_and_a_second_reading_changes_nothing(
    annotations: dict[str, str], koord: str, trusted: bool
) -> None:
    w = Workload("shop", "web", {CLASS: koord}, TRUSTED if trusted else SHOP, annotations=annotations)
    once = translate(w)
    assert translate(once) == once
    choice = Chooser(builtin()).choose(once)
    assert trusted or choice.profile is None or choice.profile.metadata.name in ("ls", "be")
    laid = layers(once, choice, EffectiveStrategy())
    assert trusted or laid.cpu.pinning in ("none", "shared")
