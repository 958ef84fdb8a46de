"""Where a run leaves what it has to take away again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from j10ce.bench.scratch import refuse_of_others
from j10ce.errors import Denied


def writable(place: Path) -> Path:
    place.mkdir()
    place.chmod(0o777)
    return place


def elsewhere(place: Path) -> Path:
    place.symlink_to("/")
    return place


def of_a_user(place: Path) -> Path:
    place.mkdir(0o700)
    if os.geteuid():
        pytest.skip("Unsupported: giving a folder away needs root")
    os.chown(place, 65534, -1)
    return place


@pytest.mark.parametrize("made", [writable, elsewhere, of_a_user], ids=lambda f: f.__name__)
def test_nobody_else_says_what_a_run_ends_and_removes(made: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises(Denied, match="others could have a run end what they like"):
        refuse_of_others(made(tmp_path / "place"))


def test_a_folder_of_ones_own_will_do(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir(0o700)
    refuse_of_others(tmp_path / "place")
