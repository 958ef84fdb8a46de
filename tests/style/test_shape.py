"""Folders, names, seams and state: rules 2, 3, 8, 13 and 21."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from tests.style.sources import Function, Source, dotted, everything, product

VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "core", "lib", "base", "impl"}
VAGUE_CLASS = re.compile(r"(Impl|Manager|Factory|Helper|Util)$|^(Abstract|Base)")
MAX_DEPTH = 3
MAX_METHODS = 4
WIDE_SEAMS = {"Backend", "Store", "Tree"}  # each explained in docs/adr/


def test_folders_and_modules_have_domain_names() -> None:
    parts = {part for source in everything() for part in PurePath(source.path).with_suffix("").parts}
    assert not parts & VAGUE


def test_folders_are_at_most_three_deep() -> None:
    deep = [source.path for source in product() if source.module.count("/") > MAX_DEPTH]
    assert not deep


def test_classes_are_named_for_what_they_are() -> None:
    vague = [
        f"{source.path}:{node.lineno} {node.name}"
        for source in product()
        for node in source.classes()
        if VAGUE_CLASS.search(node.name)
    ]
    assert not vague


def test_a_seam_has_few_methods() -> None:
    wide = [
        f"{source.path}:{node.lineno} {node.name}"
        for source in product()
        for node in source.classes()
        if is_protocol(node) and node.name not in WIDE_SEAMS and methods(node) > MAX_METHODS
    ]
    assert not wide, f"more than {MAX_METHODS} methods need a page in docs/adr/ and a row in WIDE_SEAMS"


def is_protocol(node: ast.ClassDef) -> bool:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(dotted(base).split(".")[-1] == "Protocol" for base in bases)


def methods(node: ast.ClassDef) -> int:
    functions = (child for child in node.body if isinstance(child, Function))
    return sum(not function.name.startswith("__") for function in functions)


def test_modules_hold_no_state() -> None:
    stateful = [f"{source.path}:{line}" for source in product() for line in empty_containers(source)]
    assert not stateful, "an empty container at module level waits for someone to fill it"


def empty_containers(source: Source) -> list[int]:
    return [
        node.lineno
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and (
            (isinstance(node.value, ast.Dict) and not node.value.keys)
            or (isinstance(node.value, ast.List) and not node.value.elts)
            or (isinstance(node.value, ast.Call) and dotted(node.value.func) in ("dict", "list", "set", "defaultdict"))
        )
    ]
