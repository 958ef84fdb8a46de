"""Long work that needs nothing of the event loop: in a thread, which takes its time from the loop in small pieces.

Of all callers one is worked for at a time, and each has one piece of work in the queue for that. An administrator's
does not wait for others'. The time is the caller's, also where it gives up: what a thread has begun it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from time import thread_time
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from j10ce.manager.identity import Act, Role, current

T = TypeVar("T")


class Queue:
    """Of one event loop."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.own: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by caller


_QUEUES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Queue]] = WeakKeyDictionary()


async def beside(work: Callable[[], T]) -> T:
    """What `work` gives. It looks at nothing that the event loop changes."""
    act = current()
    async with AsyncExitStack() as turns:
        if act.caller.role is not Role.ADMIN:
            queue = _QUEUES.setdefault(asyncio.get_running_loop(), Queue())
            await turns.enter_async_context(queue.own.setdefault(act.caller.name, asyncio.Lock()))
            await turns.enter_async_context(queue.first)
        if act.meter is not None:
            act.meter.ask()  # what was done for the same caller while this waited counts
        return await _done(act, Timed(work))


async def _done(act: Act, timed: Timed[T]) -> T:
    working = asyncio.get_running_loop().run_in_executor(None, timed.work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])  # or whoever gives up could have any number of threads at work, for nothing
        raise
    finally:
        if act.meter is not None:
            act.meter.pay_for_thread(timed.took_s)


class Timed(Generic[T]):
    """Work, and the processor time that it took in its thread."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self.took_s = work, 0.0

    def work(self) -> T:
        began = thread_time()
        try:
            return self._work()
        finally:
            self.took_s = thread_time() - began
