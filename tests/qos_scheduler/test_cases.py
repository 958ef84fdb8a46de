"""Our own cases of every rule pass, and a case that says otherwise fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.qos_scheduler.__main__ import cases, main

FILES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_our_cases_pass(file: Path) -> None:
    for _, run, case in cases(json.loads(file.read_text())):
        run(case)


@pytest.mark.parametrize(
    ("document", "status"),
    [
        pytest.param({"slo": [{"annotations": {"slo": "0.9"}, "slo": 0.9}]}, 0, id="met"),
        pytest.param({"slo": [{"annotations": {"slo": "0.9"}, "slo": 0.8}]}, 1, id="not met"),
        pytest.param({"slo": [{"annotations": {}}]}, 1, id="without what is expected"),
        pytest.param({"songs": [{}]}, 1, id="of no rule"),
        pytest.param({"about": "nothing"}, 2, id="no case"),
    ],
)
def test_the_exit_status_says_whether_all_cases_are_met(document: object, status: int, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(json.dumps(document))
    assert main([str(tmp_path)]) == status
