"""Files that only their owner may read: whole or not there at all, and never over another's."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.daemon.secret_files import create_private, read_token, write_private
from j10ce.errors import Denied


def test_a_secret_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "new" / "token", "s3cret\n")
    assert (tmp_path / "new" / "token").read_text() == "s3cret\n"
    assert (tmp_path / "new" / "token").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["token"]


def test_a_secret_takes_the_place_of_a_link_and_not_of_what_it_points_at(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("theirs")
    (tmp_path / "token").symlink_to("other")
    write_private(tmp_path / "token", "ours")
    assert ((tmp_path / "other").read_text(), (tmp_path / "token").read_text()) == ("theirs", "ours")


def test_two_writers_at_once_leave_one_whole_secret(tmp_path: Path) -> None:
    secrets = ["a" * 100_000, "b" * 100_000]
    with ThreadPoolExecutor(2) as threads:
        for _ in range(20):
            list(threads.map(lambda text: write_private(tmp_path / "token", text), secrets))
            assert (tmp_path / "token").read_text() in secrets
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_name_that_somebody_else_took_in_a_shared_folder_hinders_nobody(tmp_path: Path) -> None:
    (tmp_path / f".token.{os.getpid()}").mkdir()
    write_private(tmp_path / "token", "ours")
    assert (tmp_path / "token").read_text() == "ours"


def test_nothing_is_left_of_a_secret_that_could_not_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "token", "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_file_that_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "backup").write_text("first")
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "backup", b"second")
    assert (tmp_path / "backup").read_text() == "first"


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        create_private(tmp_path / "backup", b"objects")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [write_private, lambda path, text: create_private(path, text.encode())])
def test_a_secret_is_there_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, str], None]
) -> None:
    """What it says is on disk before its name is, and then its name."""
    synced: list[tuple[bool, bool]] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append((stat.S_ISDIR(os.fstat(fd).st_mode), (tmp_path / "token").exists()))
    )
    write(tmp_path / "token", "s3cret")
    assert [is_folder for is_folder, _ in synced] == [False, True]
    assert synced[-1] == (True, True), "the folder is kept once the name is in it"


@pytest.mark.skipif(os.geteuid() != 0, reason="Unsupported: giving a file away needs root")
def test_a_token_that_another_user_put_there_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("known-to-them\n")
    (tmp_path / "token").chmod(0o600)
    os.chown(tmp_path / "token", 65534, 65534)
    with pytest.raises(Denied, match="belongs to uid 65534, who knows the token"):
        read_token(tmp_path / "token")


@given(st.binary(max_size=200))
def test_no_content_of_a_token_file_makes_it_crash(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            token = read_token(Path(file.name))
        except Denied:
            return
    assert token == content.decode().strip()
    assert token.isascii()
    assert len(token.split()) == 1


def test_a_missing_token_is_made_once(tmp_path: Path) -> None:
    made = read_token(tmp_path / "token")
    assert len(made) > 40
    assert read_token(tmp_path / "token") == made
