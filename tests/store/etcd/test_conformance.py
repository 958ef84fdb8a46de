"""etcd behaves as the seam says."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from j10ce.store.schemes import open_store
from j10ce.store.store import Store
from j10ce.testing.build import WALL
from j10ce.testing.conformance_store import StoreConformance


class TestEtcd(StoreConformance):
    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = open_store(url, lambda: WALL)
        yield store
        await store.close()
