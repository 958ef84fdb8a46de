"""What is downloaded, to develop, to run or into an image, has the hash that its pin says: nobody can exchange it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.deploy.dockerfiles import CLONE
from tools.pin import SETS

FILES = sorted((CLONE / "requirements").iterdir())
PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text())
EACH = pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in FILES])


def lines(file: Path) -> list[str]:
    """One for each package, with its hashes."""
    return [line for line in file.read_text().replace("\\\n", "").splitlines() if not line.startswith("#")]


def pins(name: str) -> dict[str, str]:
    matched = (re.match(r"([a-z0-9-]+)==([^\s;]+)", line) for line in lines(CLONE / f"requirements/{name}.txt"))
    return {match[1]: match[2] for match in matched if match}


def named(requirement: str) -> str:
    match = re.match(r"[\w-]+", requirement)
    assert match
    return match[0].lower().replace("_", "-")


def wanted(extra: str) -> set[str]:
    """What pyproject.toml names for an extra, with those that it stands for."""
    collected = set[str]()
    for requirement in PROJECT["project"]["optional-dependencies"][extra]:
        inner = re.fullmatch(r"j10ce-qos\[(.*)\]", requirement)
        collected |= set().union(*map(wanted, inner[1].split(","))) if inner else {named(requirement)}
    return collected


def test_there_is_a_file_for_everything_that_is_installed() -> None:
    assert {file.stem for file in FILES} == SETS.keys()


@EACH
def test_every_package_has_a_version_and_hashes(file: Path) -> None:
    for line in lines(file):
        assert re.match(r"[a-z0-9-]+==\S+ ", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", line), line


@EACH
def test_a_package_has_one_version_everywhere(file: Path) -> None:
    everything = pins("dev")
    assert {name: everything.get(name) for name in pins(file.stem)} == pins(file.stem)


@EACH
def test_nothing_that_the_project_names_is_without_a_pin(file: Path) -> None:
    extras, builds = SETS[file.stem]
    names = set().union(*map(wanted, extras))
    names |= {named(r) for r in PROJECT["project"]["dependencies"]} if extras else set()
    names |= {named(r) for r in PROJECT["build-system"]["requires"]} if builds else set()
    assert names - pins(file.stem).keys() == set(), "make pins"


def test_whatever_make_installs_is_compared_with_its_pin() -> None:
    text = (CLONE / "Makefile").read_text()
    (check,) = re.findall(r"^FROM_PINS := .*", text, re.MULTILINE)
    (own,) = re.findall(r"^FROM_CLONE := .*", text, re.MULTILINE)
    assert "--require-hashes" in check
    assert "--no-deps --no-build-isolation" in own
    step = r'^tools/stage \d \$\(STEPS\) "[^"]*" \d+ '  # which says how far it is
    installs = {
        re.sub(step, "", line.strip("\t@"))
        for line in text.splitlines()
        if line.startswith("\t") and re.search(r"PIP|FROM_|pip ", line)
    }
    assert installs == {"$(FROM_PINS)/host.txt", "$(FROM_PINS)/dev.txt", "$(FROM_CLONE)", "$(PIP) uv"}
