from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from j10ce.store.memory import MemoryStore
from tests.manager.keepers.world import Clock, Manager, running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(clock: Clock) -> AsyncIterator[MemoryStore]:
    made = MemoryStore(clock.wall)
    yield made
    await made.close()


@pytest.fixture
async def manager(store: MemoryStore, clock: Clock) -> AsyncIterator[Manager]:
    made = Manager(store, clock)
    async with running(made):
        yield made
