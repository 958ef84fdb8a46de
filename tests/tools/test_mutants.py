"""What `make mutants` says of one mutant, and that the copy is sound again afterwards."""

from __future__ import annotations

from pathlib import Path

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
    mutant = TOOL.Mutant("plan", "rule.py", before, after, ("test_rule.py",), "none")
    rule = tmp_path / mutant.path
    rule.parent.mkdir(parents=True)
    rule.write_text("x = 1\ny = 1\n")
    (rule.parent / "__init__.py").touch()
    (tmp_path / "test_rule.py").write_text("from j10ce.rule import x\n\ndef test(): assert x == 1\n")
    assert TOOL._try(1, mutant, tmp_path).verdict == verdict
    assert rule.read_text() == "x = 1\ny = 1\n"
