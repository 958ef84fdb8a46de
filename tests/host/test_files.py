"""Kept descriptors: vanished files, files made again, and a budget that holds."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.files import ENOUGH, HEADROOM, Files, budget, read_whole


@pytest.fixture
def files() -> Iterator[Files]:
    opened = Files(limit=4)
    yield opened
    opened.close()


def make(folder: Path, count: int) -> list[str]:
    paths = [folder / f"file{n}" for n in range(count)]
    for n, path in enumerate(paths):
        path.write_text(f"{n}\n")
    return [str(path) for path in paths]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_second_read_sees_what_was_written_since(files: Files, tmp_path: Path) -> None:
    (path,) = make(tmp_path, 1)
    assert files.read(path) == b"0\n"
    Path(path).write_text("17\n")
    assert files.read(path) == b"17\n"


def test_a_file_that_never_was_is_none(files: Files, tmp_path: Path) -> None:
    assert files.read(str(tmp_path / "none")) is None
    assert files.read(str(tmp_path / "none/below")) is None


def test_an_error_that_is_no_absence_is_raised(files: Files, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        files.read(str(tmp_path))


def test_no_more_descriptors_are_kept_than_the_limit_allows(files: Files, tmp_path: Path) -> None:
    paths, before = make(tmp_path, 50), descriptors()
    for _ in range(3):
        assert [files.read(path) for path in paths] == [b"%d\n" % n for n in range(50)]
    assert len(files) == 4
    assert descriptors() == before + 4


def test_a_round_over_more_files_than_the_limit_keeps_its_hits(files: Files, tmp_path: Path) -> None:
    paths = make(tmp_path, 8)
    for _ in range(3):
        for path in paths:
            files.read(path)
    opened = {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
    assert set(paths[:4]) <= opened


def test_idle_descriptors_make_room_for_used_ones(files: Files, tmp_path: Path) -> None:
    idle, used = make(tmp_path, 8)[:4], make(tmp_path, 8)[4:]
    for path in idle:
        files.read(path)
    for _ in range(20):
        for path in used:
            files.read(path)
    kept = {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
    assert set(used) <= kept
    assert not set(idle) & kept


def test_when_others_use_up_the_descriptors_it_gives_some_back(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files, paths = Files(limit=1000), make(tmp_path, 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 60, hard))
    try:
        for _ in range(2):
            assert [files.read(path) for path in paths] == [b"%d\n" % n for n in range(200)]
        assert files.limit < 60
    finally:
        files.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_budget_leaves_headroom() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        assert budget() == 1024 - HEADROOM
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_long_file_is_cut_when_sampled_and_whole_when_asked_for(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (3 * ENOUGH))
    assert files.read(str(path)) == b"x" * ENOUGH
    assert read_whole(str(path)) == b"x" * (3 * ENOUGH)
    assert read_whole(str(tmp_path / "none")) is None


@pytest.mark.host
def test_a_cgroup_that_was_removed_and_made_again_is_read_anew(own_cgroup: Path) -> None:
    files = Files()
    child = own_cgroup / "child"
    shares = str(child / "cpu.shares")
    child.mkdir()
    (child / "cpu.shares").write_text("512")
    assert files.read(shares) == b"512\n"
    child.rmdir()
    assert files.read(shares) is None
    assert len(files) == 0
    child.mkdir()
    assert files.read(shares) == b"1024\n"
    files.close()
    child.rmdir()
