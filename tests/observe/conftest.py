"""Cgroups of our own on the real kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies


@pytest.fixture
def own_tree() -> Iterator[tuple[Hierarchies, str]]:
    """(hierarchies, path of an empty cgroup that is in all of them); what is left of it is removed."""
    hierarchies, path = Hierarchies.discover(), f"j10cetest-{os.getpid()}"
    directories = [Path(hierarchies.directory(c, path)) for c in hierarchies.in_use()]
    if not directories:
        pytest.skip("Unsupported: no cgroup hierarchy is mounted")
    if hierarchies.mode == "v2":
        enabled = Path(hierarchies.directory("unified", ""), "cgroup.subtree_control")
        enabled.write_text("+cpu +memory")
    for directory in directories:
        directory.mkdir()
    try:
        yield hierarchies, path
    finally:
        for directory in directories:
            for below in sorted((d for d in directory.rglob("*") if d.is_dir()), reverse=True):
                below.rmdir()
            with suppress(FileNotFoundError):
                directory.rmdir()
