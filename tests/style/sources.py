"""The sources as syntax trees, for tests that read code."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

CLONE = Path(__file__).resolve().parents[2]
PACKAGE = CLONE / "src/j10ce"
GENERATED = ("src/j10ce/dashboard/vendor/", "src/j10ce/manager/grpc/proto/", "src/j10ce/store/etcd/proto/")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    path: str  # from the clone's root
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Path below the package: kernel/cgroup/v2.py."""
        return self.path.removeprefix("src/j10ce/")

    def nodes(self) -> tuple[ast.AST, ...]:
        return all_nodes(self.tree)

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes() if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes() if isinstance(node, ast.ClassDef))

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes() if isinstance(node, ast.Call))


@cache
def product() -> tuple[Source, ...]:
    return tuple(load("src/j10ce"))


@cache
def all_nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Gone through once: a dozen tests ask, and there are a million of them."""
    return tuple(ast.walk(tree))


@cache
def everything() -> tuple[Source, ...]:
    elsewhere = (source for folder in ("tests", "tools", "benchmarks", "examples") for source in load(folder))
    try:
        gc.disable()
        return (*product(), *elsewhere)
    finally:
        gc.freeze()  # they stay, and the collector need not look at a million nodes again and again
        gc.enable()


def load(folder: str) -> Iterator[Source]:
    for file in sorted((CLONE / folder).rglob("*.py")):
        path = file.relative_to(CLONE).as_posix()
        if not path.startswith(GENERATED):
            text = file.read_text()
            yield Source(path, text, ast.parse(text, path))


def dotted(node: ast.expr) -> str:
    """os.path.join for an expression that spells it; the part that can be spelled for others: ?.write_text."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case _:
            return "?"
