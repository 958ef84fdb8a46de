"""One agent per run directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from j10ce.daemon.lock import Lock, held, holder
from j10ce.errors import Busy


def test_the_second_is_refused_and_hears_who_holds_it(tmp_path: Path) -> None:
    first, second = Lock(tmp_path), Lock(tmp_path)
    first.take("steady")
    with pytest.raises(Busy, match=str(os.getpid())):
        second.take("steady")
    first.drop()
    second.take("until-idle")
    assert holder(tmp_path) == (os.getpid(), "until-idle")
    second.drop()


@pytest.mark.parametrize("content", ["", "garbage", "x y z"])
def test_a_file_that_says_nothing_names_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "agent.lock").write_text(content)
    assert holder(tmp_path) == (0, "unknown")


def test_a_lock_is_held_until_it_is_free_whatever_its_file_says(tmp_path: Path) -> None:
    assert not held(tmp_path)
    lock = Lock(tmp_path)
    lock.take("until-idle")
    (tmp_path / "agent.lock").write_text("")
    assert held(tmp_path)
    lock.drop()
    assert not held(tmp_path)
