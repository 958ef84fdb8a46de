"""Turns: who waits for whom when many ask at once."""

from __future__ import annotations

import asyncio
import os

from j10ce.agent.socket.admission import Caller
from j10ce.agent.socket.turns import Turns

NOBODY, SOMEBODY = os.geteuid() + 4711, os.geteuid() + 4712


async def served(*uids: int) -> list[int]:
    """Everybody asks at once, in this order; in which order they are answered, each in two steps."""
    turns, answered = Turns(), list[int]()

    async def ask(uid: int) -> None:
        async with turns.of(Caller(1, uid, uid)):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            answered.append(uid)

    await asyncio.gather(*map(ask, uids))
    return answered


async def test_root_does_not_wait_behind_users() -> None:
    assert (await served(*[NOBODY] * 20, 0)).index(0) <= 1


async def test_whoever_asks_once_is_not_behind_all_that_another_asks() -> None:
    assert (await served(*[NOBODY] * 20, SOMEBODY)).index(SOMEBODY) <= 1


async def test_one_who_gives_up_holds_nobody_up() -> None:
    turns = Turns()

    async def ask(uid: int) -> int:
        async with turns.of(Caller(1, uid, uid)):
            await asyncio.sleep(0)
            return uid

    async with asyncio.TaskGroup() as tasks:
        async with turns.of(Caller(1, NOBODY, NOBODY)):
            gives_up, goes_on = [tasks.create_task(ask(uid)) for uid in (NOBODY, SOMEBODY)]
            await asyncio.sleep(0)
            gives_up.cancel()
        assert await goes_on == SOMEBODY
        assert await ask(NOBODY) == NOBODY
