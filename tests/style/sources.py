"""The sources as syntax trees, for tests that read code."""

from __future__ import annotations

import ast
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

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))


@cache
def product() -> tuple[Source, ...]:
    return tuple(load("src/j10ce"))


@cache
def everything() -> tuple[Source, ...]:
    return (*product(), *(source for folder in ("tests", "tools", "benchmarks", "examples") for source in load(folder)))


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
