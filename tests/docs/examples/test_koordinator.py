"""The example of docs/koordinator.md, typed as it stands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from tests.docs.pages import CLONE, blocks, commands

LINES = [
    line.split(" | ")[0].removeprefix("j10ce-qos ")
    for block in blocks()
    if block.page == "docs/koordinator.md"
    for line in commands(block)
    if line.startswith("j10ce-qos ") and "examples/koordinator" in line
]


def typed(line: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "j10ce.cli.main", *line.split()]
    env = {**os.environ, "PYTHONPATH": str(CLONE / "src"), "J10CE_RUN_DIR": "/nonexistent"}
    return subprocess.run(argv, cwd=CLONE, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def answers() -> dict[str, subprocess.CompletedProcess[str]]:
    return {line.split()[0]: typed(line) for line in LINES}


def test_the_page_converts_and_plans(answers: dict[str, subprocess.CompletedProcess[str]]) -> None:
    assert {*answers} == {"convert", "plan"}
    assert [done.returncode for done in answers.values()] == [0, 0], [done.stderr for done in answers.values()]


def test_every_class_has_its_profile(answers: dict[str, subprocess.CompletedProcess[str]]) -> None:
    for profile in ("system", "lse", "lsr", "ls", "be"):
        assert f"workload/shop/{profile}-pod-example: profile {profile}," in answers["plan"].stdout


def test_the_entry_of_the_pool_and_the_label_of_the_node_count(
    answers: dict[str, subprocess.CompletedProcess[str]],
) -> None:
    made = {obj["metadata"]["name"]: obj["spec"] for obj in yaml.safe_load_all(answers["convert"].stdout)}
    assert made["koordinator-resource-threshold-online"]["suppress"]["thresholdPercent"] == 50
    (own,) = (spec for name, spec in made.items() if name.startswith("koordinator-colocation-nodes-"))
    assert own["overcommit"]["cpu"]["thresholdPercent"] == 70


def test_what_is_not_heeded_is_named(answers: dict[str, subprocess.CompletedProcess[str]]) -> None:
    assert "networkQOS" in answers["convert"].stderr
    assert "koordinator.sh/networkQOS is not heeded" not in answers["plan"].stdout, "that of a pod is"
