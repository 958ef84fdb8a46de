from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.session import Session

numbers = count()


def session(folder: Path, clone: Path) -> Iterator[Session]:
    one = Session(folder, f"j10cetest-cli-{os.getpid()}-{next(numbers)}", clone)
    yield one
    one.clean()


@pytest.fixture
def cli(tmp_path: Path, clone: Path) -> Iterator[Session]:
    """The command, with nothing running yet."""
    yield from session(tmp_path, clone)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Session]:
    """The command beside one `up` that the tests of a module share; each uses names of its own."""
    for one in session(tmp_path_factory.mktemp("stack"), clone):
        one.up()
        yield one
