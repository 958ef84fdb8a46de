"""The tests have the rooms of the sources: what tests a room stands in tests/<package>/<room>."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.style.sources import CLONE, PACKAGE, Function, Source, dotted, load

MOST_FILES = 12
NOT_COUNTED = {"__init__.py", "conftest.py"}
TESTS = CLONE / "tests"
# What spans packages, or is no package at all.
FEATURES = {
    *(
        "deploy",
        "docs",
        "enforce",
        "etcd",
        "faults",
        "fleet",
        "koordinator",
        "kubectl",
        "lab",
        "qos_scheduler",
        "reservations",
        "rollout",
        "security",
    ),
    *("soak", "style", "systemd", "tools", "trace"),
}
PLANE = "kube"  # beside the client of that package, what needs a control plane, by what is tried on it


def folders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and path.name != "__pycache__"]


def packages(root: Path) -> set[str]:
    return {path.name for path in folders(root) if any(path.rglob("*.py"))}


def test_a_folder_of_tests_has_at_most_twelve_files() -> None:
    inner = [path for path in TESTS.rglob("*") if path.is_dir()]
    files = {path.relative_to(CLONE).as_posix(): modules(path) for path in inner}
    assert not {path: n for path, n in files.items() if n > MOST_FILES}, "give its files rooms of their own"


def modules(folder: Path) -> int:
    return sum(file.name not in NOT_COUNTED for file in folder.glob("*.py"))


def test_every_package_has_its_tests_and_every_other_folder_is_a_feature() -> None:
    assert packages(TESTS) - FEATURES == packages(PACKAGE)


@pytest.mark.parametrize("package", sorted(packages(TESTS) - FEATURES - {PLANE}))
def test_the_rooms_of_the_tests_are_rooms_of_the_package(package: str) -> None:
    assert packages(TESTS / package) <= packages(PACKAGE / package)


def test_a_conftest_has_fixtures_and_hooks_only() -> None:
    """Classes and functions that tests import have a module with a name, beside it."""
    others = {
        f"{source.path}:{node.lineno} {node.name}"
        for source in load("tests")
        if source.path.endswith("/conftest.py") and source.path != "tests/conftest.py"
        for node in helpers(source)
    }
    assert not others


def helpers(source: Source) -> list[ast.ClassDef | Function]:
    made = (node for node in source.tree.body if isinstance(node, ast.ClassDef | Function))
    return [node for node in made if not node.name.startswith("pytest_") and not is_fixture(node)]


def is_fixture(node: ast.ClassDef | Function) -> bool:
    calls = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
    return any(dotted(call) == "pytest.fixture" for call in calls)
