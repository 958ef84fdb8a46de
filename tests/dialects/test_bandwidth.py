"""Kubernetes' annotations of bandwidth are ceilings, in bits a second everywhere but in Terway's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from j10ce.agent.dialects import dialect
from j10ce.dialects.bandwidth import translate
from j10ce.dialects.terway import pods as terway
from j10ce.model.parts.sections import NetworkDirection
from j10ce.model.quantity import Quantity
from j10ce.model.workload import Traffic, Workload, heeded
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.resolve import resolve
from j10ce.testing import build

OUT, IN = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"


def pod(**annotations: str) -> Workload:
    named = {"out": OUT, "into": IN, "terway": terway.CLASS, "koordinator": "koordinator.sh/networkQOS"}
    return Workload("shop", "web", annotations={named[key]: text for key, text in annotations.items()})


def ceilings(w: Workload) -> tuple[str, str]:
    network = w.overrides.sections.network
    return tuple("" if d.ceiling is UNSET else str(d.ceiling) for d in (network.egress, network.ingress))  # type: ignore[return-value]


def notes(w: Workload) -> list[str]:
    return [str(note) for note in w.overrides.notes]


@pytest.mark.parametrize(
    ("annotations", "made"),
    [
        ({}, ("", "")),
        ({"out": "10M"}, ("10M", "")),
        ({"out": "10M", "into": "1Gi"}, ("10M", "1Gi")),
    ],
    ids=["none", "one direction", "both"],
)
def test_each_is_a_ceiling_of_its_direction(annotations: dict[str, str], made: tuple[str, str]) -> None:
    w = translate(pod(**annotations))
    assert ceilings(w) == made
    assert {*w.overrides.origins.values()} == {
        f"annotation {name}" for key, name in (("out", OUT), ("into", IN)) if key in annotations
    }


@pytest.mark.parametrize("text", ["10X", "", "5%", "1", "2P", "-1M", "1e99", "ten"])
def test_what_is_no_rate_is_a_note_and_the_pod_runs(text: str) -> None:
    w = translate(pod(out=text))
    assert ceilings(w) == ("", "")
    assert [note.partition(":")[0] for note in notes(w)] == [f"annotation {OUT}"]


def test_terway_reads_the_same_word_as_bytes_and_says_so() -> None:
    w = terway.translate(pod(out="10M", terway="best-effort"))
    assert w.overrides.sections.network.egress.ceiling == Quantity.parse("80M")
    assert w.overrides.sections.network.class_ == "bulk"
    assert notes(w) == [f"annotation {OUT}: 10M bytes a second, which is 80Mbit"]


@pytest.mark.parametrize(
    ("word", "said"), [("guaranteed", "critical"), ("burstable", "normal"), ("best-effort", "bulk"), ("fast", UNSET)]
)
def test_a_class_orders_what_a_pod_sends(word: str, said: object) -> None:
    w = terway.translate(pod(terway=word))
    assert w.overrides.sections.network.class_ == said
    assert bool(notes(w)) is (said is UNSET)


def test_the_annotations_are_understood_without_any_dialect_and_once_with_terway() -> None:
    assert ceilings(dialect(())(pod(out="10M"))) == ("10M", "")
    assert ceilings(dialect(("terway",))(pod(out="10M"))) == (str(Quantity.parse("80M")), "")


def test_what_koordinator_says_of_the_pod_alone_goes_before() -> None:
    w = dialect(("koordinator",))(pod(out="10M", into="20M", koordinator='{"egressLimit": "5M"}'))
    assert ceilings(w) == ("5M", "20M")


def test_the_adapter_keeps_them_and_the_ceiling_is_in_force_with_its_source() -> None:
    w = translate(
        Workload("shop", "web", {"j10ce.io/qos-profile": "web"}, annotations=heeded({OUT: "10M", "a/b": "c"}))
    )
    document = NodeDocument(node="n1", profiles=(build.profile("web"),))
    entitled = resolve([w], document, build.node(), wall=build.WALL).entitlements[w.target]
    assert entitled.egress == Traffic(0.0, 1e7)
    assert ("network.egress.ceiling", f"annotation {OUT}") in {(s.field, s.object) for s in entitled.sources}


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_whatever_is_written_the_pod_runs_and_a_second_reading_changes_nothing(out: str, into: str, word: str) -> None:
    for one in (translate, terway.translate, dialect(("koordinator",))):
        once = one(pod(out=out, into=into, terway=word))
        assert one(once) == once
        for direction in (once.overrides.sections.network.egress, once.overrides.sections.network.ingress):
            assert direction == NetworkDirection() or direction.ceiling is not UNSET
