"""Whatever is typed, the answer is a message and an exit code, never a traceback."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from j10ce.cli.main import COMMANDS, main

# Commands that would change this machine, start something, or stay: `up`, `run` and `adopt` start an agent.
CALM = sorted(set(COMMANDS) - {"up", "run", "adopt", "revert", "bundle"})
WORDS = st.sampled_from(
    ["web", "cpu.max", "qosprofiles", "workloads", "-o", "json", "yaml", "-n", "../x", "--", "-f", "-", "/nonexistent",
     "--for", "10m", "--why", "x", "--value", "-1", "", "-A", "-l", "a in (", "--server", "http://[::1", "check",
     "bash", "--help", "ä\x00", "group/", "node", "1e999", "--alone", "-w"]
)  # fmt: skip
KNOWN = {0, 1, 2, 3, 4, 5, 6, 7}


def ends_with(words: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    for name in ("RUN", "STATE", "CONFIG"):
        monkeypatch.setenv(f"J10CE_{name}_DIR", str(folder / name))
    monkeypatch.setattr(sys, "argv", ["j10ce-qos", *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.sampled_from(CALM), words=st.lists(WORDS | st.text(max_size=8), max_size=6))
def test_no_words_make_it_crash(
    command: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch:
        assert ends_with([command, *words], patch, tmp_path) in KNOWN
    output = capsys.readouterr().err
    assert "Traceback" not in output
    assert "this is a bug" not in output


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["--server", "nonsense", "get", "qp"], 3, "write it as http://", id="no address"),
        pytest.param(["--server", "http://127.0.0.1:x", "get", "qp"], 3, "write it as http://", id="no port"),
        pytest.param(["--server", "http://127.0.0.1:1", "get", "qp"], 4, "no API answers at http", id="nobody there"),
        pytest.param(["--server", "http://x", "--token-file", "/no", "get", "qp"], 6, "/no: No such file", id="token"),
        pytest.param(["nope"], 2, "No such command", id="no such command"),
        pytest.param(["get", "wl", "web", "-w"], 2, "a name goes without", id="a name with a watch"),
        pytest.param(["plan", "-f", "/nonexistent"], 6, "/nonexistent: No such file", id="no such file"),
        pytest.param(["config", "check", "/nonexistent"], 2, "does not exist", id="no such folder"),
    ],
)
def test_mistakes_are_reported(
    words: list[str],
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ends_with(words, monkeypatch, tmp_path) == code
    assert says in capsys.readouterr().err


def test_an_unexpected_error_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("j10ce.cli.host.doctor.examine", lambda: {}["missing"])
    assert ends_with(["doctor"], monkeypatch, tmp_path) == 1
    assert "KeyError: 'missing'; this is a bug" in capsys.readouterr().err
