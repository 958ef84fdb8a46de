"""Which clone the commands on PATH are of: the first that was set up, until another is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    return tmp_path / "bin"


def clone_of(tmp_path: Path, name: str) -> Path:
    command = tmp_path / name / "j10ce-qos"
    command.parent.mkdir()
    command.touch(0o755)
    return command


def link(clone: Path, bin_dir: Path, *words: str) -> str:
    environ = {**os.environ, "LINK_DIR": str(bin_dir)}
    done = subprocess.run(
        [clone / "tools/link-commands", *words], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_second_clone_leaves_the_commands_to_the_first_until_it_is_asked(
    tmp_path: Path, clone: Path, bin_dir: Path
) -> None:
    first, second = clone_of(tmp_path, "first"), clone_of(tmp_path, "second")
    assert f"command: {bin_dir}/j10ce-qos\n" in link(clone, bin_dir, str(first))
    assert f"another clone's and stay (was: {first.parent}). To use this clone's: make link" in link(
        clone, bin_dir, str(second)
    )
    assert (bin_dir / "j10ce-qos").readlink() == first
    assert f"(was: {first})" in link(clone, bin_dir, "--replace", str(second))
    assert (bin_dir / "j10ce-qos").readlink() == second


def test_the_command_of_a_clone_that_is_gone_is_replaced(tmp_path: Path, clone: Path, bin_dir: Path) -> None:
    first, second = clone_of(tmp_path, "first"), clone_of(tmp_path, "second")
    link(clone, bin_dir, str(first))
    first.unlink()
    assert f"(was: {first})" in link(clone, bin_dir, str(second))
    assert (bin_dir / "j10ce-qos").readlink() == second


def test_a_file_that_is_no_link_stays(tmp_path: Path, clone: Path, bin_dir: Path) -> None:
    bin_dir.mkdir()
    (bin_dir / "j10ce-qos").write_text("someone's own")
    assert "is not ours and stays" in link(clone, bin_dir, "--replace", str(clone_of(tmp_path, "mine")))
    assert (bin_dir / "j10ce-qos").read_text() == "someone's own"
