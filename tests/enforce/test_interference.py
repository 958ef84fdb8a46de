"""On a real kernel: a workload that slows another one is named, and both are explained."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.session import eventually
from tests.enforce.product import Product

pytestmark = [pytest.mark.host, pytest.mark.real_cpus]
CPU = str(max(os.sched_getaffinity(0)))
NAMED_S = 240.0  # whatever else this machine does meanwhile
SPIN = ("taskset", "-c", CPU, "sh", "-c", "while :; do :; done")
# Four processes that want the same CPU for ten seconds, and nothing for the next ten.
PULSE = """
import os, time
for _ in range(3):
    if not os.fork():
        break
while True:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        pass
    time.sleep(10)
"""


@pytest.fixture
def fresh(tmp_path: Path, clone: Path) -> Iterator[Product]:
    one = Product(tmp_path, f"j10cetest-noise-{os.getpid()}", clone)
    yield one
    one.clean()


def test_a_real_antagonist_beside_a_real_victim_is_named(fresh: Product) -> None:
    fresh.launch("victim", "--profile", "ls", "--", *SPIN)
    fresh.launch("hog", "--profile", "burstable", "--", "taskset", "-c", CPU, sys.executable, "-c", PULSE)

    def named() -> bool:
        pairs = fresh.agent.get("/v1/top")["interference"]
        return ("default/victim", "default/hog", "cpu") in {
            (p["victim"], p["antagonist"], p["resource"]) for p in pairs
        }

    assert eventually(named, NAMED_S), fresh.agent.get("/v1/top")
    assert "hog" in fresh.says("top", "--once").partition("SUFFERS")[2]
    assert "suffers from default/hog: waits" in fresh.says("explain", "victim")
    assert "slows default/victim, which waits" in fresh.says("explain", "hog")
