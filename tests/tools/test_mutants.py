"""What `make mutants` says of one mutant, and that the copy is sound again afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.mutants import TOOL


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("x = 1", "x = 2", TOOL.CAUGHT),
        ("y = 1", "y = 2", TOOL.SURVIVED),
        ("x = 1", "x = (", TOOL.BROKEN),
        ("z = 1", "z = 2", TOOL.STALE),
    ],
)
def test_a_mutant_is_caught_by_a_test_that_fails_and_by_nothing_else(
    tmp_path: Path, before: str, after: str, verdict: str
) -> None:
    assert tried(tmp_path, before, after).verdict == verdict
    assert (tmp_path / "src/j10ce/rule.py").read_text() == "x = 1\ny = 1\n"


@pytest.mark.parametrize(
    ("mark", "marker", "verdict"),
    [
        ("@pytest.mark.lab", "lab", TOOL.CAUGHT),
        ("@pytest.mark.lab", "", TOOL.UNTRIED),
        ("", "lab", TOOL.UNTRIED),
        ("@pytest.mark.skip", "", TOOL.UNTRIED),
    ],
    ids=["named", "left-out", "none-has-it", "skipped"],
)
def test_a_mutant_whose_tests_did_not_run_is_neither_caught_nor_broken_and_says_so(
    tmp_path: Path, mark: str, marker: str, verdict: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = lab\naddopts = -m 'not lab'\n")
    ending = tried(tmp_path, "x = 1", "x = 2", mark=mark, marker=marker)
    assert ending.verdict == verdict
    assert ending.tail.startswith("none of its tests ran" if verdict == TOOL.UNTRIED else "")


def test_a_mutant_whose_tests_do_not_end_is_not_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine would be taken for a test that notices."""
    monkeypatch.setattr(TOOL, "LONGEST_S", 0.0)
    ending = tried(tmp_path, "x = 1", "x = 2")
    assert ending.verdict == TOOL.UNENDED
    assert "have one of them fail at once" in ending.tail


def test_without_any_mutant_tests_that_do_not_run_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not TOOL._passes_unchanged(tmp_path, [mutant_in(tmp_path, "x = 1", "x = 2", mark="@pytest.mark.skip")])
    assert "none of its tests ran" in capsys.readouterr().out


def tried(copy: Path, before: str, after: str, *, mark: str = "", marker: str = "") -> Any:
    return TOOL._try(1, mutant_in(copy, before, after, mark=mark, marker=marker), copy)


def mutant_in(copy: Path, before: str, after: str, *, mark: str = "", marker: str = "") -> Any:
    """A mutant of a rule that one test in the copy looks at."""
    mutant = TOOL.Mutant("plan", "rule.py", before, after, ("test_rule.py",), "none", marker)
    rule = copy / mutant.path
    rule.parent.mkdir(parents=True)
    rule.write_text("x = 1\ny = 1\n")
    (rule.parent / "__init__.py").touch()
    test = f"import pytest\nfrom j10ce.rule import x\n\n{mark}\ndef test(): assert x == 1\n"
    (copy / "test_rule.py").write_text(test)
    return mutant
