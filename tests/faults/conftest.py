"""Real agents for tests that harm them: each below a top cgroup of its own, everything removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess

numbers = count()


def one_agent(folder: Path, clone: Path) -> Iterator[AgentProcess]:
    one = AgentProcess(folder, f"j10cefault-{os.getpid()}-{next(numbers)}", clone)
    yield one
    one.clean()


@pytest.fixture
def agent(tmp_path: Path, clone: Path) -> Iterator[AgentProcess]:
    """Not started yet."""
    yield from one_agent(tmp_path, clone)


def ticks(agent: AgentProcess) -> float:
    """How often the whole ring has run."""
    lines = agent.client.get("/metrics").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith('j10ce_ring_runs_total{cause="tick"}'))
