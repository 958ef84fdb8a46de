"""tools/stage says which step of how many it is, and passes on what the command makes of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def stage(clone: Path, cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    words = [clone / "tools/stage", "2", "3", "packages: a/b.txt", "40", *command]
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_off_a_terminal_it_is_one_plain_line(clone: Path, tmp_path: Path) -> None:
    ended = stage(clone, tmp_path, "echo", "done")
    assert ended.stdout == "2 of 3  packages: a/b.txt, about 40 s\ndone\n"


def test_the_next_time_it_knows_how_long_it_takes(clone: Path, tmp_path: Path) -> None:
    stage(clone, tmp_path, "true")
    assert "about 40 s" not in stage(clone, tmp_path, "true").stdout


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_commands(clone: Path, tmp_path: Path, code: int) -> None:
    assert stage(clone, tmp_path, "sh", "-c", f"exit {code}").returncode == code


def test_a_failure_is_not_remembered(clone: Path, tmp_path: Path) -> None:
    stage(clone, tmp_path, "false")
    assert "about 40 s" in stage(clone, tmp_path, "true").stdout
