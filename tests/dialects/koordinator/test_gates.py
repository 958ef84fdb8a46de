"""koordlet's feature gates switch controllers of ours, and the page says which."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.gates import GATES, switched

PAGE = (Path(__file__).parents[3] / "docs/koordinator.md").read_text()
TEXTS = st.lists(st.tuples(st.sampled_from([*GATES]), st.booleans()), max_size=10)


@pytest.mark.parametrize(
    ("text", "off"),
    [
        pytest.param("", (), id="nothing said"),
        pytest.param("BECPUSuppress=false", ("cpu-suppress",), id="off"),
        pytest.param("BECPUSuppress=true", (), id="on"),
        pytest.param("CPUEvict=false", ("eviction",), id="one of several"),
        pytest.param("CPUEvict=false,MemoryEvict=true", (), id="another one is on"),
        pytest.param("CgroupReconcile=false", ("memory-qos", "memory-reclaim"), id="several controllers"),
        pytest.param("CPUBurst=false,CPUBurst=true", (), id="the last word counts"),
        pytest.param(" CPUBurst = False , ", ("cpu-burst",), id="blanks and capitals"),
        pytest.param("AuditEvents=false", (), id="one that switches nothing here"),
    ],
)
def test_which_controllers_are_off(text: str, off: tuple[str, ...]) -> None:
    assert switched(text) == (off, (), ())


def test_a_gate_without_a_controller_says_what_does_its_work() -> None:
    assert switched("AuditEvents=true").notes == ("AuditEvents: the journal and `explain`",)


@pytest.mark.parametrize(
    "text", ["BECPUSupress=true", "CPUBurst", "CPUBurst=maybe", "CPUBurst=", "=true", "AllAlpha=true"]
)
def test_what_is_no_gate_is_a_finding_and_the_rest_counts(text: str) -> None:
    said = switched(f"{text},BECPUSuppress=false")
    assert said.off == ("cpu-suppress",)
    assert [f.path for f in said.findings] == ["koordletFeatureGates"]


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    switched(text)


@given(TEXTS)
def test_a_controller_is_off_exactly_if_some_gate_of_it_is_off_and_none_is_on(said: list[tuple[str, bool]]) -> None:
    last = dict(said)
    off = set(switched(",".join(f"{name}={str(on).lower()}" for name, on in said)).off)
    for controller in {c for gate in GATES.values() for c in gate.controllers}:
        words = [on for name, on in last.items() if controller in GATES[name].controllers]
        assert (controller in off) == (bool(words) and not any(words))


@pytest.mark.parametrize("name", [*GATES])
def test_the_page_has_every_gate(name: str) -> None:
    gate = GATES[name]
    controllers = ", ".join(f"`{c}`" for c in gate.controllers) or "–"
    assert f"| `{name}` | {'on' if gate.on else 'off'} | {controllers} | {gate.instead} |" in PAGE
