"""Three real etcds that are killed and paused: nothing acknowledged is lost, no read is stale, no name is won twice."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from j10ce.store.schemes import open_store
from j10ce.store.store import Store
from j10ce.testing.build import WALL
from tests.etcd.chaos import FAULTS, KEYS, Notes, torture
from tests.etcd.cluster import Cluster, running
from tests.etcd.history import is_linearizable


@asynccontextmanager
async def stores(cluster: Cluster, count: int = 3) -> AsyncIterator[list[Store]]:
    opened = [open_store(cluster.url, lambda: WALL) for _ in range(count)]
    yield opened
    for store in opened:
        await store.close()


def check(notes: Notes) -> None:
    summary = f"{notes.count('ok')} ok, {notes.count('conflict')} conflicts, {notes.count('unknown')} unknown, "
    print(summary + f"{notes.failed} failed")
    assert notes.count("ok") > 100
    for key in KEYS:
        assert is_linearizable(notes.histories[key]), key


@pytest.mark.slow
async def test_no_fault_breaks_the_order_of_things(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        async with stores(cluster) as opened:
            check(await torture(opened, cluster, FAULTS, seed=1))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("round_", range(int(os.environ.get("J10CE_SOAK", "10"))))
async def test_no_sequence_of_faults_breaks_the_order_of_things(tmp_path: Path, round_: int) -> None:
    chance = random.Random(round_)
    with running(tmp_path) as cluster:
        async with stores(cluster) as opened:
            check(await torture(opened, cluster, chance.choices(FAULTS, k=12), seed=round_))
