"""The runner of case files: what passes, what deviates as documented, what fails, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.koordinator.__main__ import main
from tests.koordinator.judge import OPS, judged

CASES = Path(__file__).parent / "cases"


def written(path: Path, *cases: dict[str, Any]) -> str:
    (path / "own.json").write_text(json.dumps({"suite": "own", "cases": [*cases]}))
    return str(path)


def case(op: str, expected: Any, **given: Any) -> dict[str, Any]:
    return {"id": "x-1", "description": "", "input": {"op": op, **given}, "expected": expected}


def test_our_own_cases_pass_and_the_one_deviation_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CASES)]) == 0
    output = capsys.readouterr().out
    assert "1 documented deviation, 0 fail" in output.splitlines()[-1]
    assert "divides by zero" in output


def test_every_op_has_a_case_of_our_own() -> None:
    cases = [case for file in CASES.glob("*.json") for case in json.loads(file.read_text())["cases"]]
    assert {case["input"]["op"] for case in cases} == OPS.keys()
    assert len({case["id"] for case in cases}) == len(cases)


def test_a_case_that_fails_is_told_with_both_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, case("shares_to_weight", 2, shares=2))]) == 1
    assert "fail x-1: expected 2, got 1" in capsys.readouterr().out


def test_an_op_that_nobody_knows_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, case("dance", 2))]) == 1
    assert "no function for op 'dance'" in capsys.readouterr().out


def test_a_case_of_another_shape_fails_and_the_others_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, case("shares_to_weight", 1), case("shares_to_weight", 1, shares=2))]) == 1
    assert "total: 1 pass, 0 documented deviation, 1 fail" in capsys.readouterr().out


def test_nothing_to_run_is_no_success(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
    assert main([]) == 2


@pytest.mark.parametrize(("expected", "outcome"), [({"error": True}, "pass"), (5, "fail"), ({"error": False}, "fail")])
def test_an_error_is_expected_or_it_is_a_failure(expected: Any, outcome: str) -> None:
    assert judged(case("weight_to_shares", expected, weight=0)).outcome == outcome


def test_true_is_not_one() -> None:
    assert judged(case("min_free_kbytes", True, memory_bytes=0, factor=0, previous_kb=1)).outcome == "fail"
