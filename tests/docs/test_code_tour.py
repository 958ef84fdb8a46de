"""Every file and every name of the pages about the code exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import CLONE

PACKAGE = CLONE / "src/j10ce"
PAGES = ("code-tour.md", "glossary.md", "architecture.md")
TOUR = "".join((CLONE / "docs" / page).read_text() for page in PAGES)
PATH = re.compile(r"`([\w./-]+/[\w./-]*|[\w/-]+\.py)(?::([\w.]+))?`")


def named() -> list[tuple[str, str]]:
    return sorted(set(PATH.findall(TOUR)))


@pytest.mark.parametrize(("path", "name"), [pytest.param(*pair, id=":".join(pair).rstrip(":")) for pair in named()])
def test_what_a_page_about_the_code_names_exists(path: str, name: str) -> None:
    file = next((base / path for base in (PACKAGE, CLONE) if (base / path).exists()), None)
    assert file is not None, f"there is no {path}, neither below src/j10ce nor in the clone"
    if name:
        assert name in names(file), f"{path} has no {name}"


def names(file: Path) -> set[str]:
    """Functions and classes at the top of a module, and what classes define: `f`, `C`, `C.method`."""
    defined = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef):
            inner = (n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
            defined |= {node.name, *(f"{node.name}.{name}" for name in inner)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
    return defined


def test_the_pages_name_enough_to_be_checked() -> None:
    assert len(named()) > 100
