"""The table of mutants keeps up with the code: each names a line that is there, once, and tests that exist."""

from __future__ import annotations

from pathlib import Path

from tests.tools.mutants import MUTANTS


def test_the_line_of_each_mutant_stands_in_its_file_once() -> None:
    """Whoever changes such a line changes the row in tools/mutants along with it."""
    assert [f"{m.path}: {m.before}" for m in MUTANTS if m.occurrences() != 1 or m.after == m.before] == []


def test_there_are_a_hundred_and_each_does_harm_of_its_own() -> None:
    assert len(MUTANTS) == len({m.harm for m in MUTANTS}) == 100


def test_the_tests_that_must_catch_them_exist(clone: Path) -> None:
    assert [name for m in MUTANTS for name in m.tests if not (clone / name).is_file()] == []
