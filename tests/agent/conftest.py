from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.process import AgentProcess, one_agent


@pytest.fixture
def agent(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    """Not started yet."""
    with one_agent(tmp_path, clone) as one:
        yield one
