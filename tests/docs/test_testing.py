"""The page of what is tried names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/testing.md"
NAMED = re.findall(r"`(tests/[a-z0-9_/]+\.py)::(\w+)`", PAGE.read_text())


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_a_test_that_the_page_names_exists(clone: Path, file: str, name: str) -> None:
    assert re.search(rf"^\s*(async def|def|class) {name}\b", (clone / file).read_text(), re.MULTILINE)


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| by |" not in line]
    assert len(rows) == len(NAMED) > 60
