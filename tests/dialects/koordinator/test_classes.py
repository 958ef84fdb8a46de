"""Which class, band and priority a pod has: each step of the chain, and where it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.classes import (
    BANDS,
    PROFILES,
    Band,
    KoordClass,
    band_at,
    band_of,
    band_or_default,
    class_of,
    class_or_default,
    label_findings,
    native_class,
    sub_priority,
)
from j10ce.model.kube.pod import PodResources
from j10ce.model.quantity import Quantity
from j10ce.model.workload import NativeClass
from j10ce.policy.profiles import builtin
from tests.koordinator.theirs.defaults import priority_or_default

QOS, BAND, SUB = "koordinator.sh/qosClass", "koordinator.sh/priority-class", "koordinator.sh/priority"
NATIVE = st.sampled_from(("Guaranteed", "Burstable", "BestEffort"))
LABELS = st.dictionaries(
    st.sampled_from((QOS, BAND, SUB)),
    st.one_of(st.text(max_size=8), st.sampled_from(("LSE", "LSR", "LS", "BE", "SYSTEM", "koord-prod", "koord-free"))),
)


@pytest.mark.parametrize("word", ["LSE", "LSR", "LS", "BE", "SYSTEM"])
def test_a_class_is_what_the_label_says(word: str) -> None:
    assert class_of({QOS: word}).value == word
    assert class_or_default({QOS: word}, "BestEffort").value == word


@pytest.mark.parametrize("word", ["", "be", "LSE ", "unknown"])
def test_a_word_that_is_no_class_is_none(word: str) -> None:
    assert class_of({QOS: word}) is KoordClass.NONE


@pytest.mark.parametrize(("native", "expected"), [("Guaranteed", "LSR"), ("Burstable", "LS"), ("BestEffort", "BE")])
def test_without_a_label_kubernetes_own_class_decides(native: NativeClass, expected: str) -> None:
    assert class_or_default({}, native).value == expected


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (9999, Band.PROD), (9000, Band.PROD), (8999, Band.NONE), (8000, Band.NONE), (7999, Band.MID), (7000, Band.MID),
        (6999, Band.NONE), (5999, Band.BATCH), (5000, Band.BATCH), (4999, Band.NONE), (3999, Band.FREE),
        (3000, Band.FREE), (2999, Band.NONE), (10_000, Band.NONE), (0, Band.NONE), (-1, Band.NONE), (None, Band.NONE),
        (2_000_001_000, Band.NONE),
    ],
)  # fmt: skip
def test_a_band_is_a_range_of_priorities(priority: int | None, expected: Band) -> None:
    assert band_at(priority) is expected


def test_the_label_of_a_band_wins_and_an_unknown_one_does_not_fall_back_to_the_number() -> None:
    assert band_of({BAND: "koord-mid"}, 5500) is Band.MID
    assert band_of({BAND: "batch"}, 5500) is Band.NONE


@pytest.mark.parametrize(
    ("labels", "priority", "native", "expected"),
    [
        pytest.param({QOS: "LSR"}, 5499, "Guaranteed", Band.BATCH, id="a number beats the class"),
        pytest.param({QOS: "BE"}, None, "Burstable", Band.BATCH, id="best effort is batch"),
        pytest.param({QOS: "SYSTEM"}, None, "BestEffort", Band.PROD, id="system is prod"),
        pytest.param({QOS: "LSE"}, 100, "BestEffort", Band.PROD, id="a number of no band says nothing"),
        pytest.param({}, None, "BestEffort", Band.BATCH, id="no label, nothing asked for"),
        pytest.param({}, None, "Guaranteed", Band.PROD, id="no label, guaranteed"),
        pytest.param({BAND: "other", QOS: "BE"}, 9000, "Burstable", Band.BATCH, id="an unknown label"),
    ],
)
def test_a_band_is_found_by_label_number_and_class(
    labels: dict[str, str], priority: int | None, native: NativeClass, expected: Band
) -> None:
    assert band_or_default(labels, priority, native) is expected


@pytest.mark.parametrize(
    ("labels", "priority", "expected"),
    [({QOS: "BE"}, 5001, 5001), ({QOS: "BE"}, None, 5500), ({QOS: "LS"}, 0, 9500), ({BAND: "koord-free"}, None, 3500),
     ({BAND: "koord-mid"}, 0, 7500), ({QOS: "BE"}, -7, -7)],
)  # fmt: skip
def test_a_priority_that_is_not_said_is_the_default_of_the_band(
    labels: dict[str, str], priority: int | None, expected: int
) -> None:
    assert priority_or_default(labels, priority, "Burstable") == expected


@given(LABELS, st.one_of(st.none(), st.integers(-(2**31), 2**31)), NATIVE)
def test_every_pod_has_a_class_a_band_and_a_priority(
    labels: dict[str, str], priority: int | None, native: NativeClass
) -> None:
    band = band_or_default(labels, priority, native)
    assert class_or_default(labels, native) is not KoordClass.NONE
    assert band is not Band.NONE
    assert priority_or_default(labels, priority, native) in ({priority} if priority else {BANDS[band].default})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", 7), ("-7", -7), ("0", 0), ("", None), ("7.5", None), ("٧", None), ("9" * 30, None), ("2147483648", None)],
)
def test_a_priority_within_a_band_is_a_number_of_32_bits(text: str, expected: int | None) -> None:
    assert sub_priority({SUB: text}) == expected


def test_wrong_labels_are_told_and_right_ones_are_not() -> None:
    assert [*label_findings({QOS: "LSR", BAND: "koord-mid", SUB: "12"})] == []
    wrong = [*label_findings({QOS: "LSX", BAND: "koord-prd", SUB: "high"})]
    assert [finding.path.rpartition(".labels.")[2] for finding in wrong] == [QOS, BAND, SUB]
    assert "koord-prod" in wrong[1].hint
    assert all(finding.hint for finding in wrong)


def test_the_profiles_that_classes_map_to_exist_and_have_that_tier() -> None:
    built_in = {profile.metadata.name: profile.spec.tier for profile in builtin()}
    assert {koord.value: ours.profile for koord, ours in PROFILES.items()} == {
        "SYSTEM": "system", "LSE": "lse", "LSR": "lsr", "LS": "ls", "BE": "be",
    }  # fmt: skip
    assert all(built_in[ours.profile] is ours.tier for ours in PROFILES.values())


def asks(requests: dict[str, str], limits: dict[str, str]) -> PodResources:
    amounts = ({name: Quantity.parse(text) for name, text in given.items()} for given in (requests, limits))
    return PodResources(requests=next(amounts), limits=next(amounts))


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([asks(BOTH, BOTH)], "Guaranteed", id="equal"),
        pytest.param([asks({}, BOTH)], "Guaranteed", id="limits alone"),
        pytest.param([asks({"cpu": "1000m", "memory": "1Gi"}, BOTH)], "Guaranteed", id="equal in other words"),
        pytest.param([asks(BOTH, BOTH), asks({}, {})], "Burstable", id="one container asks for nothing"),
        pytest.param([asks({"cpu": "1"}, {"cpu": "1"})], "Burstable", id="no memory"),
        pytest.param([asks({"cpu": "500m", "memory": "1Gi"}, BOTH)], "Burstable", id="less than the limit"),
        pytest.param([asks({"kubernetes.io/batch-cpu": "500"}, {})], "BestEffort", id="another resource"),
        pytest.param([asks({"cpu": "0"}, {})], "BestEffort", id="nothing is asked for"),
        pytest.param([], "BestEffort", id="no container"),
    ],
)
def test_kubernetes_own_class(containers: list[PodResources], expected: str) -> None:
    assert native_class(containers) == expected
