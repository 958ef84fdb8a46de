"""What can be said of an image without an engine: its Dockerfile keeps our rules."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.deploy.dockerfiles import CLONE, FILES, instructions, program, stages

PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
EACH = pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in FILES])
TOOLS = {"scheduler": ["curl"]}  # of Debian, for people who look from within
LABELS = {"title", "description", "licenses", "source", "version", "revision"}


def test_every_process_of_a_cluster_has_an_image() -> None:
    assert [file.stem for file in FILES] == ["agent", "controller-manager", "scheduler"]
    assert [program(file) for file in FILES] == [f"j10ce-qos-{file.stem}" for file in FILES]


@EACH
def test_what_builds_is_not_what_runs(file: Path) -> None:
    build, run = stages(file)
    removed, *added = [i.text for i in run if i.word == "RUN"]
    assert removed == "pip uninstall --yes pip setuptools wheel", "nothing is compiled, and nothing left to do so"
    assert added == [
        f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {tool} && rm -rf /var/lib/apt/lists/*"
        for tool in TOOLS.get(file.stem, ())
    ]
    copied = [i.words for i in run if i.word == "COPY"]
    assert copied == [["--from=build", "/opt/j10ce-qos", "/opt/j10ce-qos"]]
    assert build[0].text == f"{run[0].text} AS build", "a venv works with the interpreter it was made with"


@EACH
def test_the_base_is_slim_and_has_a_version(file: Path) -> None:
    for stage in stages(file):
        assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", stage[0].words[0]), stage[0]


@EACH
def test_packages_are_pinned_and_leave_no_cache(file: Path) -> None:
    (run,) = (i for i in stages(file)[0] if i.word == "RUN")
    venv, *installs = (part.split() for part in run.text.split("&&"))
    assert "--without-pip" in venv
    assert all("--no-cache-dir" in words for words in installs)
    *downloads, own = installs
    assert [words[-1] for words in downloads] == ["requirements/build.txt", f"requirements/{file.stem}.txt"]
    assert all({"--require-hashes", "--only-binary"} <= set(words) for words in downloads)
    assert {"--no-deps", "--no-build-isolation"} <= set(own), "our own package brings nothing with it"
    assert not {"apt-get", "curl", "wget", "git"} & set(run.words)


@EACH
def test_only_instructions_that_are_needed(file: Path) -> None:
    allowed = {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "LABEL", "ENV", "USER", "ENTRYPOINT"}
    assert {i.word for i in instructions(file)} <= allowed
    entry = next(i for i in instructions(file) if i.word == "ENTRYPOINT")
    assert entry.text.startswith("["), "a shell in between would swallow SIGTERM"


@EACH
def test_it_tells_what_it_is(file: Path) -> None:
    (label,) = (i for i in stages(file)[-1] if i.word == "LABEL")
    assert set(re.findall(r"org\.opencontainers\.image\.(\w+)=", label.text)) == LABELS
    assert f'licenses="{PROJECT["license"]}"' in label.text
    assert f'title="j10ce-qos-{file.stem}"' in label.text


def test_only_the_agent_is_root() -> None:
    users = {file.stem: [i.text for i in stages(file)[-1] if i.word == "USER"] for file in FILES}
    assert users == {"agent": ["0:0"], "controller-manager": ["65532:65532"], "scheduler": ["65532:65532"]}


@EACH
def test_what_it_copies_is_there_and_not_ignored(file: Path) -> None:
    sources = {source for i in stages(file)[0] if i.word == "COPY" for source in i.words[:-1]}
    assert all((CLONE / source).exists() for source in sources)
    ignore = (CLONE / ".dockerignore").read_text().splitlines()
    assert ignore[1] == "*"
    assert sources == {line.removeprefix("!") for line in ignore if line.startswith("!")}


# ------------------------------------------------------------------ make docker-build

ENGINE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$1" in info|version) exit {code};; esac
"""


def build_images(box: Path, engines: dict[str, int], **environ: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """tools/build-images where `engines` are installed; a status that is not 0: one that does not answer."""
    (box / "bin").mkdir()
    for name, code in engines.items():
        (box / "bin" / name).write_text(ENGINE.replace("{code}", str(code)))
        (box / "bin" / name).chmod(0o755)
    (box / "calls").touch()
    path = ":".join([str(box / "bin"), *(f for f in ("/usr/bin", "/bin"))])
    env = {"PATH": path, "CALLS": str(box / "calls"), "HOME": os.environ["HOME"], **environ}
    done = subprocess.run([CLONE / "tools/build-images"], env=env, capture_output=True, text=True, check=False)
    return done, (box / "calls").read_text()


def test_the_first_engine_that_answers_builds_all(tmp_path: Path) -> None:
    done, calls = build_images(tmp_path, {"docker": 1, "podman": 0, "buildah": 0})
    assert done.returncode == 0, done.stderr
    built = [line for line in calls.splitlines() if " build " in line]
    assert [line.split()[:6] for line in built] == [
        ["podman", "build", "-f", f"build/{name}.Dockerfile", "-t", f"j10ce-qos-{name}:{PROJECT['version']}"]
        for name in ("agent", "controller-manager", "scheduler")
    ]


def test_images_can_be_named_for_a_registry(tmp_path: Path) -> None:
    _, calls = build_images(tmp_path, {"buildah": 0}, ENGINE="buildah", REGISTRY="registry.example/qos")
    assert f"-t registry.example/qos/j10ce-qos-agent:{PROJECT['version']}" in calls


def test_without_an_engine_it_says_so(tmp_path: Path) -> None:
    done, calls = build_images(tmp_path, {"docker": 1, "podman": 1, "buildah": 1})
    assert done.returncode == 1
    assert "No container engine answers" in done.stderr
    assert " build " not in calls
