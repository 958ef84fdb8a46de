"""The overcommit file: layers, every finding at once, and what stays in force while it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from j10ce.errors import Denied, Invalid
from j10ce.manager.keepers.overcommit_file import Strategies, StrategyFile, parse
from j10ce.model.kinds import Meta, NodeQoS, NodeQoSSpec
from j10ce.model.quantity import Duration
from j10ce.policy.overcommit import DEFAULT, OvercommitStrategy
from tests.docs.pages import blocks

LAYERS = b"""
cpu: {by: request}
degrade: 1h
nodes:
- name: pool
  nodeSelector: {matchLabels: {pool: batch}}
  cpu: {thresholdPercent: 80}
- name: never-reached
  nodeSelector: {matchLabels: {pool: batch}}
"""


def of(strategies: Strategies, **labels: str) -> tuple[str, OvercommitStrategy]:
    return strategies.of(NodeQoS(metadata=Meta(name="n1"), spec=NodeQoSSpec(labels=labels)))


def test_without_a_word_the_defaults_count() -> None:
    assert parse(b"") == parse(b"{}") == Strategies()
    assert of(parse(b"nodes: []")) == ("default", DEFAULT)


def test_nodes_go_over_the_fleet_and_the_fleet_over_the_defaults() -> None:
    parsed = parse(LAYERS)
    name, fleet = of(parsed)
    assert (name, fleet.cpu.by, fleet.cpu.threshold_percent, fleet.degrade) == (
        "default",
        "request",
        60,
        Duration(3600),
    )
    name, pool = of(parsed, pool="batch")
    assert (name, pool.cpu.by, pool.cpu.threshold_percent, pool.degrade) == ("pool", "request", 80, Duration(3600))
    assert pool.memory == DEFAULT.memory


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param("[]", [""], id="no mapping"),
        pytest.param("cpu: {thresholdPercent: 2000}", ["cpu.thresholdPercent"], id="out of range"),
        pytest.param("cpu: {by: guess}\nmemmory: {}", ["cpu.by", "memmory"], id="two at once"),
        pytest.param("degrade: 0s", ["degrade"], id="always degraded"),
        pytest.param("nodes: {}\ndifference: 2", ["difference"], id="a share above one"),
        pytest.param("nodes: {a: b}", ["nodes"], id="no list"),
        pytest.param("nodes: [a]", ["nodes[0]"], id="an entry that is none"),
        pytest.param("nodes: [{cpu: {by: 1}}]", ["nodes[0].name", "nodes[0].cpu.by"], id="in an entry"),
        pytest.param("nodes: [{name: a, nodeSelector: {}}]", ["nodes[0].nodeSelector"], id="every node"),
        pytest.param(
            "nodes: [{name: default, nodeSelector: {matchLabels: {a: '?'}}}]",
            ["nodes[0].name", "nodes[0].nodeSelector.matchLabels.a"],
            id="a taken name and a wrong label",
        ),
        pytest.param(
            "nodes:\n- &a {name: a, nodeSelector: {matchLabels: {a: b}}}\n- *a", ["nodes[1].name"], id="a name twice"
        ),
        pytest.param("cpu: [", [""], id="no YAML"),
    ],
)
def test_every_finding_is_reported_at_its_place(text: str, paths: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        parse(text.encode())
    assert [finding.path for finding in refused.value.findings][: len(paths)] == paths


def test_a_file_is_followed_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "overcommit.yaml"
    path.write_bytes(LAYERS)
    held = StrategyFile(path)
    assert held() == parse(LAYERS)
    path.write_text("cpu: {by: guess}")
    held.reload()
    assert held() == parse(LAYERS)
    path.write_text("cpu: {by: usage, thresholdPercent: 70}")
    held.reload()
    assert held().fleet.cpu.threshold_percent == 70


def test_a_manager_does_not_start_with_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="No such file"):
        StrategyFile(tmp_path / "absent")


def test_the_documented_file_is_valid_and_names_every_field() -> None:
    (block,) = [b for b in blocks() if (b.page, b.language) == ("docs/overcommit.md", "yaml")]
    parsed = parse(block.text.encode())
    assert [entry.chosen.name for entry in parsed.entries] == ["batch-pool"]
    plain = yaml.safe_load(block.text)
    plain.pop("nodes")
    named = {key for section in ("cpu", "memory") for key in plain[section]} | plain.keys()
    fields = {field for struct in (OvercommitStrategy, type(DEFAULT.cpu)) for field in struct.__struct_encode_fields__}
    assert fields == named
