"""The agent stays small: a budget for importing it, in a clean interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

BUDGET_MIB = 40.0
NEVER = (
    "starlette", "uvicorn", "uvloop", "httptools", "click", "yaml", "httpx2", "numpy", "prometheus_client",
    "hypothesis", "pytest",
)  # fmt: skip

# Development tools install rich, and structlog imports it wherever it is; an agent's own environment has none.
MEASURE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules["rich"] = None
import j10ce.agent.main
import gc
gc.collect()
for line in open("/proc/self/smaps_rollup"):
    if line.startswith("Rss:"):
        print(line.split()[1])
print(*sys.modules)
"""


class Import(NamedTuple):
    rss_mib: float
    modules: frozenset[str]


@pytest.fixture(scope="module")
def agent(clone: Path) -> Import:
    command = [sys.executable, "-I", "-c", MEASURE, str(clone / "src")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rss_kib, modules = ended.stdout.splitlines()
    return Import(int(rss_kib) / 1024, frozenset(modules.split()))


def test_agent_imports_within_its_budget(agent: Import) -> None:
    assert agent.rss_mib <= BUDGET_MIB, f"{agent.rss_mib:.1f} MiB, {len(agent.modules)} modules"


def test_agent_imports_nothing_of_the_other_processes(agent: Import) -> None:
    assert not agent.modules.intersection(NEVER)
