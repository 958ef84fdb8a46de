"""Every import of ours leads to a module that is there, in tests and benchmarks too, which no type checker reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.style.sources import CLONE, Source, everything

OURS = {"j10ce": CLONE / "src", "tests": CLONE, "benchmarks": CLONE}


def lost(source: Source) -> Iterator[str]:
    """The modules that a source imports and that nobody has."""
    for node in source.nodes():
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS and not node.level:
            names = [alias.name for alias in node.names]
            yield from (f"{source.path}:{node.lineno} {node.module}.{name}" for name in names if not has(node, name))


def has(node: ast.ImportFrom, name: str) -> bool:
    """A name of a module is for whoever checks types; one of a folder is a module, or stands in its `__init__`."""
    first, *rest = str(node.module).split(".")
    path = OURS[first].joinpath(first, *rest)
    if path.with_suffix(".py").exists():
        return True
    beside = any((path / name).with_suffix(suffix).exists() for suffix in ("", ".py"))
    return beside or ((path / "__init__.py").exists() and name in (path / "__init__.py").read_text())


def test_every_import_of_ours_leads_to_a_module() -> None:
    assert [where for source in everything() for where in lost(source)] == []


def test_what_was_moved_is_missed() -> None:
    code = (
        "from j10ce.policy.nowhere import x\nfrom j10ce.policy import nowhere, payer\nfrom tests.style import sources"
    )
    assert [*lost(Source("a.py", code, ast.parse(code)))] == [
        "a.py:1 j10ce.policy.nowhere.x",
        "a.py:2 j10ce.policy.nowhere",
    ]
