"""A manager in this process: the application without a network, and both of its front ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import Manager, assemble
from tests.manager.grpc.both import Both, running


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    made = assemble(MemoryStore(lambda: WALL))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(made.view.run()), group.create_task(made.keyring.follow())]
        await made.view.ready()
        await made.keyring.synced.wait()
        yield made
        for task in tasks:
            task.cancel()
    await made.store.close()


@pytest.fixture
async def api(manager: Manager) -> AsyncIterator[httpx.AsyncClient]:
    async with manager.client() as client:
        yield client


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with running(tmp_path / "audit") as made:
        yield made
