"""One control plane for the tests that only ask it questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.plane import Manager, Plane


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    with Plane(tmp_path_factory.mktemp("plane")).manager() as manager:
        yield manager


@pytest.fixture
def plane(tmp_path: Path) -> Plane:
    return Plane(tmp_path)
