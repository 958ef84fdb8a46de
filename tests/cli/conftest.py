from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.session import Session, session


@pytest.fixture
def cli(tmp_path: Path, clone: Path) -> Iterator[Session]:
    """The command, with nothing running yet."""
    with session(tmp_path, clone) as one:
        yield one


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Session]:
    """The command beside one `up` that the tests of a module share; each uses names of its own."""
    with session(tmp_path_factory.mktemp("stack"), clone) as one:
        one.up()
        yield one
