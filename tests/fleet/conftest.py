"""A fleet of real parts: three etcd members, three managers and three agents, each host in a namespace of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet, standing


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[Fleet]:
    """Shared by the tests of a module; each leaves every part of it running."""
    with ExitStack() as stack:
        yield stack.enter_context(standing(tmp_path_factory.mktemp("fleet"), clone, f"j10cefleet-{os.getpid()}"))
