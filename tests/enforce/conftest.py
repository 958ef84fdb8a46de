from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest

from j10ce.host.mounts import Hierarchies
from tests.enforce.workbench import Workbench

numbers = count()


@pytest.fixture
def work() -> Iterator[Workbench]:
    """Real cgroups of this test's own."""
    work = Workbench(Hierarchies.discover(), f"j10cetest-{os.getpid()}-{next(numbers)}")
    yield work
    work.clear()
