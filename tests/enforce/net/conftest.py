from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.enforce.net.shaping import Shaped
from tests.enforce.workbench import Workbench
from tests.netns import Netns


@pytest.fixture
def netns() -> Iterator[Netns]:
    """A link `eth0` of this test's own, with somebody at its other end."""
    netns = Netns()
    try:
        netns.build()
        yield netns
    finally:
        netns.clear()


@pytest.fixture
def shaped(netns: Netns, work: Workbench, tmp_path: Path) -> Shaped:
    """With cgroups for `api` and `sync`, and nothing queued for as yet."""
    return Shaped(netns, work, tmp_path / "journal")
