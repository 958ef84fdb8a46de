"""The asyncio side of the agent: it decides when the ring runs, and hands workloads in and reports out.

The ring runs on one worker thread. Nothing but immutable values crosses: events in, a Report out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, ParamSpec, TypeVar

import structlog

from j10ce.adapters.adapter import Adapter, WorkloadEvent
from j10ce.agent.clock import Clock
from j10ce.agent.loop import Agent, Report
from j10ce.model.knob import TargetId

log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")
SHORTEST_GAP_S: Final = 0.1  # between two runs that pressure asked for


class Stop(NamedTuple):
    """How the agent ends. `revert`: every value goes back; else all settings stay."""

    revert: bool = False
    why: str = ""


class Shell:
    def __init__(self, agent: Agent, adapters: Iterable[Adapter], clock: Clock, period_s: float) -> None:
        self.agent = agent
        self.clock = clock
        self.period_s = period_s
        self.report: Report | None = None  # the last one
        self.synced = asyncio.Event()  # every adapter has told all it knows
        self.wake = asyncio.Event()  # pressure, or a change that should not wait for the next tick
        self.after_run: list[Callable[[Report], None]] = []
        self.ready = asyncio.Event()  # the whole ring has run with everything that is known
        self._adapters = tuple(adapters)
        self._unsynced = len(self._adapters)
        self._ring = ThreadPoolExecutor(1, thread_name_prefix="ring")
        self._inbox: asyncio.Queue[WorkloadEvent] = asyncio.Queue()
        self._waiting: dict[TargetId, asyncio.Future[Report]] = {}
        self._stop: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()

    async def on_ring(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on the ring's thread, between two ticks."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._ring, lambda: work(*args, **kwargs))

    async def run(self) -> Stop:
        """Until someone calls `stop`; returns how to end."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._follow(adapter)) for adapter in self._adapters]
            running.append(tasks.create_task(self._handle()))
            running.append(tasks.create_task(self._tick()))
            how = await self._stop
            for task in running:
                task.cancel()
        return how

    def stop(self, how: Stop) -> None:
        if not self._stop.done():
            self._stop.set_result(how)

    def close(self) -> None:
        self._ring.shutdown(wait=True)

    def settled(self, target: TargetId) -> asyncio.Future[Report]:
        """Done when the ring has handled the next event of `target`."""
        future: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._waiting[target] = future
        return future

    async def _tick(self) -> None:
        await self.synced.wait()
        while True:
            begun = self.clock.read()
            await self._run(self.agent.tick)
            self.ready.set()
            rest = self.period_s - (self.clock.read().now - begun.now)
            await asyncio.sleep(SHORTEST_GAP_S)
            try:
                async with asyncio.timeout(max(0.0, rest - SHORTEST_GAP_S)):
                    await self.wake.wait()
            except TimeoutError:
                pass
            self.wake.clear()

    async def _follow(self, adapter: Adapter) -> None:
        async for event in adapter.workloads():
            self._inbox.put_nowait(event)

    async def _handle(self) -> None:
        """Whatever has arrived while the ring was busy is one batch: a thousand arrivals are a few runs."""
        while True:
            batch = [await self._inbox.get()]
            while not self._inbox.empty():
                batch.append(self._inbox.get_nowait())
            events = [e for e in batch if e.workload is not None]
            self._unsynced -= len(batch) - len(events)
            report = await self._run(self.agent.change, events) if events else self.report
            if self._unsynced <= 0:
                self.synced.set()
            for event in events:
                self._answer(event, report)

    async def _run(self, work: Callable[..., Report], *args: object) -> Report:
        report = await self.on_ring(work, *args, self.clock.read())
        self.report = report
        for listener in self.after_run:
            listener(report)
        return report

    def _answer(self, event: WorkloadEvent, report: Report | None) -> None:
        if event.workload is None or report is None:
            return
        future = self._waiting.pop(event.workload.target, None)
        if future is not None and not future.done():
            future.set_result(report)
