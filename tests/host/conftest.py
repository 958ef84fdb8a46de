"""Cgroups of our own on the real kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies


@pytest.fixture
def own_cgroup() -> Iterator[Path]:
    """An empty cgroup in the v1 cpu hierarchy."""
    hierarchies = Hierarchies.discover()
    if hierarchies.version("cpu") != 1:
        pytest.skip("Unsupported: this test needs the cpu controller on cgroup v1")
    path = Path(hierarchies.directory("cpu", f"j10cetest-{os.getpid()}"))
    path.mkdir()
    try:
        yield path
    finally:
        path.rmdir()
