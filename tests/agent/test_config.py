"""The configuration is strict, merges files in the order of their names, and tells every finding at once."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from j10ce.agent.config import AgentConfig, check, load
from j10ce.errors import Invalid
from j10ce.model.quantity import Duration
from j10ce.model.schema import prime

HERE = {"J10CE_RUN_DIR": "/run/a", "J10CE_STATE_DIR": "/var/a"}


def test_without_files_every_field_has_a_default(tmp_path: Path) -> None:
    config = load(tmp_path / "absent", HERE)
    assert (config.top, config.period, config.armed) == ("j10ce", Duration(1), True)
    assert config.node_name


def test_later_files_win_field_by_field(tmp_path: Path) -> None:
    (tmp_path / "10-base.yaml").write_text("top: base\nperiod: 5s\ncontrollers: {cpu-suppress: {mode: quota}}\n")
    (tmp_path / "20-site.yaml").write_text("period: 2s\ncontrollers: {floors: {}}\n")
    (tmp_path / "ignored.txt").write_text("top: wrong\n")
    config = load(tmp_path, HERE)
    assert (config.top, config.period) == ("base", Duration(2))
    assert set(config.controllers) == {"cpu-suppress", "floors"}


def test_the_environment_wins_over_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("top: file\nrunDir: /run/file\n")
    config = load(tmp_path, {**HERE, "J10CE_TOP": "env"})
    assert (config.top, config.run_dir) == ("env", "/run/a")


def test_all_findings_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("perod: 1s\narmed: 7\n")
    (tmp_path / "b.yaml").write_text("{broken")
    with pytest.raises(Invalid) as caught:
        load(tmp_path, HERE)
    paths = [finding.path for finding in caught.value.findings]
    for wrong in ("perod", "armed", "b.yaml"):
        assert any(path.endswith(wrong) for path in paths)


@pytest.mark.parametrize("text", ["- a list\n", "just text\n", "42\n"])
def test_a_file_that_is_no_mapping_is_a_finding(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(Invalid, match="not a mapping"):
        load(tmp_path, HERE)


@pytest.mark.parametrize(
    ("field", "config"),
    [
        pytest.param("top", AgentConfig(top="../x"), id="a top that leaves the tree"),
        pytest.param("top", AgentConfig(top="a/b"), id="a top with a slash"),
        pytest.param("period", AgentConfig(period=Duration(0.01)), id="a period that would spin"),
        pytest.param("socketMode", AgentConfig(socket_mode="0777"), id="a socket that others may run"),
        pytest.param("metrics", AgentConfig(metrics="0.0.0.0:9100"), id="metrics for the whole network"),
        pytest.param("server", AgentConfig(server="ftp://x"), id="a server that is no HTTP"),
        pytest.param("nodeName", AgentConfig(node_name="a b"), id="a node name with a space"),
    ],
)
def test_values_that_cannot_work_are_found(field: str, config: AgentConfig) -> None:
    assert [finding.path for finding in check(config)] == [field]


def test_settings_of_a_built_in_controller_are_checked_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("controllers: {cpu-suppress: {moode: quota}}\n")
    with pytest.raises(Invalid, match=r"controllers\.cpu-suppress\.moode"):
        load(tmp_path, HERE)


def test_the_types_of_a_whole_agent_can_be_made_ready() -> None:
    """Also those that are never decoded, such as a plan: an agent that cannot begin protects nobody."""
    assert importlib.import_module("j10ce.agent.agent")
    prime()


def test_every_mistake_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    mistakes = {
        "tick: 1": "tick = 1: unknown field",
        "drift: yeild": "drift = 'yeild': not one of the known words; did you mean yield?",
        "period: 1": "period = 1: not a duration; write it as",
        "top: ///": "top = '///': not usable",
        "controllers: {floors: {nosuch: 1}, cpu-supress: {}}": "controllers.floors.nosuch = 1: unknown field",
        "disabled: [flors]": "disabled[0] = 'flors': no such controller; did you mean floors?",
    }
    (tmp_path / "a.yaml").write_text("\n".join(mistakes))
    with pytest.raises(Invalid) as refused:
        load(tmp_path, {})
    text = str(refused.value)
    assert [says for says in mistakes.values() if says not in text] == []
    assert "controllers.cpu-supress: no such controller; did you mean cpu-suppress?" in text


def test_gates_of_koordlet_that_are_off_silence_controllers(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("disabled: [own]\nkoordletFeatureGates: BECPUSuppress=false,GroupIdentity=true\n")
    assert load(tmp_path, HERE).disabled == ("own", "cpu-suppress")


def test_a_gate_that_koordlet_has_not_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("koordletFeatureGates: BECPUSupress=false\n")
    with pytest.raises(Invalid, match="no gate of koordlet"):
        load(tmp_path, HERE)
