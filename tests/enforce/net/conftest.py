from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.netns import Netns


@pytest.fixture
def netns() -> Iterator[Netns]:
    """A link `eth0` of this test's own, with somebody at its other end."""
    netns = Netns()
    netns.build()
    yield netns
    netns.clear()
