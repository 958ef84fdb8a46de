"""One control plane for the tests that only ask it questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.plane import Manager, Plane, founded


@pytest.fixture(scope="session")
def foundation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return founded(tmp_path_factory.mktemp("foundation"))


@pytest.fixture(scope="module")
def shared(foundation: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    with Plane(foundation, tmp_path_factory.mktemp("plane")).manager() as manager:
        yield manager


@pytest.fixture
def plane(foundation: Path, tmp_path: Path) -> Plane:
    return Plane(foundation, tmp_path)
