"""The commands of docs/prove.md, in short."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from j10ce.bench.crowd import redis
from j10ce.bench.scenarios import ARMS, SCENARIOS
from j10ce.bench.scratch import PLACE
from j10ce.cli.prove.prove import ALL
from j10ce.cli.prove.prove import SCENARIOS as CHOICES
from tests.docs.pages import CLONE, blocks, commands

PAGE = "docs/prove.md"
SHORT = ("--yes", "--rounds", "1", "--seconds", "1")
TYPED = [line for block in blocks() if block.page == PAGE for line in commands(block)]


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", TYPED)
def test_a_command_of_the_page_measures_and_writes(line: str, tmp_path: Path) -> None:
    if "redis" in line and redis.program() is None:
        pytest.skip(f"Unsupported: {redis.PROGRAM} is not installed")
    words = [sys.executable, "-m", "j10ce.cli.main", *shlex.split(line)[1:], *SHORT]
    environ = {**os.environ, "PYTHONPATH": str(CLONE / "src"), PLACE: str(tmp_path / "runs")}
    ended = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert {"prove.html", "prove.json"} <= {path.name for path in tmp_path.iterdir()}


def test_the_page_names_every_scenario_and_every_arm() -> None:
    text = (CLONE / PAGE).read_text()
    assert [name for name in SCENARIOS if f"`{name}`" not in text] == []
    assert {*SCENARIOS, ALL} == {*CHOICES}
    assert [arm.name for arm in ARMS if arm.name not in text] == []
