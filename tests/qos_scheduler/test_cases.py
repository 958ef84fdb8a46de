"""Our own cases of every rule pass, and a case that says otherwise fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.qos_scheduler.__main__ import cases, main
from tests.qos_scheduler.sections import SECTIONS, Unmet

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


@pytest.mark.parametrize("section", ["clocks", "lives", "tables", "victims", "queue"])
def test_a_case_that_says_otherwise_fails(section: str) -> None:
    documents = [json.loads(file.read_text()) for file in FILES]
    held = [case for document in documents for case in document.get(section, ())]
    assert held
    for case in held:
        with pytest.raises(Unmet):
            SECTIONS[section](
                {key: spoilt(value) if key in ("expected", "text") else value for key, value in case.items()}
            )


def spoilt(value: Any) -> Any:
    """Something else of its kind."""
    match value:
        case dict():
            return {name: spoilt(each) for name, each in value.items()}
        case bool() | None:
            return not value
        case int() | float():
            return value + 1
        case list():
            return [*value, "nobody"]
        case _:
            return f"{value} and more"
