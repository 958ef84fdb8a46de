"""The asyncio side of the agent: it decides when the ring runs, and hands workloads in and reports out.

The ring runs on one worker thread. Nothing but immutable values crosses: events in, a Report out. Whatever a run raises
answers those who wait for it, is counted and logged, and the next run comes all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, ParamSpec, TypeVar

import structlog

from j10ce.adapters.adapter import Adapter, WorkloadEvent
from j10ce.agent.dialects import Dialect, as_it_is
from j10ce.agent.ring.ring import Agent, Cause, Report
from j10ce.daemon.clock import Clock
from j10ce.errors import QosError

log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")
SHORTEST_GAP_S: Final = 0.1  # between two runs that pressure asked for


class Stop(NamedTuple):
    """How the agent ends. `revert`: every value goes back; else all settings stay."""

    revert: bool = False
    why: str = ""


class Handed(NamedTuple):
    """An event on its way to the ring, and where whoever waits for it gets the report."""

    event: WorkloadEvent
    answer: asyncio.Future[Report] | None = None


class Shell:
    """What everyone beside the ring holds of it: how to hand something in, and what the last run said."""

    def __init__(
        self, agent: Agent, adapters: Iterable[Adapter], clock: Clock, period_s: float, translate: Dialect = as_it_is
    ) -> None:
        """`translate`: every workload passes through it on its way to the ring."""
        self.agent = agent
        self.clock = clock
        self.translate = translate
        self.period_s = period_s
        self.report: Report | None = None  # the last one
        self.synced = asyncio.Event()  # every adapter has listed all it knows
        self.wake = asyncio.Event()  # pressure, or a change that should not wait for the next tick
        self.fault = ""  # why the last run failed; empty when it did not
        self.ready = asyncio.Event()  # the whole ring has run with everything that is known
        self.adapters = tuple(adapters)
        self.inbox: asyncio.Queue[Handed] = asyncio.Queue()
        self.coming_tick: asyncio.Future[Report | None] = asyncio.get_running_loop().create_future()
        self.ending: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        self._ring = ThreadPoolExecutor(1, thread_name_prefix="ring")

    async def on_ring(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on the ring's thread, between two ticks."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._ring, lambda: work(*args, **kwargs))

    def stop(self, how: Stop) -> None:
        if not self.ending.done():
            self.ending.set_result(how)

    def close(self) -> None:
        self._ring.shutdown(wait=True)

    def take(self, event: WorkloadEvent) -> None:
        """The ring handles it next; should it fail, once more after every tick."""
        self.inbox.put_nowait(Handed(event))

    async def handle(self, event: WorkloadEvent) -> Report:
        """The run of the ring that handled it; raises QosError with what that raised."""
        answer: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self.inbox.put_nowait(Handed(event, answer))
        return await answer

    async def next_tick(self) -> Report | None:
        """Of the whole ring, begun after this was asked for, and soon; None when it failed."""
        self.wake.set()
        return await asyncio.shield(self.coming_tick)


class Runner:
    """Runs the ring for a shell: at every tick, and as soon as something is handed in."""

    def __init__(
        self,
        shell: Shell,
        after_run: Sequence[Callable[[Report], None]] = (),
        on_failure: Sequence[Callable[[Cause], None]] = (),
    ) -> None:
        """The listeners hear of every run before those do who wait for it."""
        self._shell, self._after_run, self._on_failure = shell, after_run, on_failure
        self._unsynced = len(shell.adapters)
        self._failed: list[Handed] = []  # those that nobody waits for: tried again after the next tick

    async def run(self) -> Stop:
        """Until someone calls `stop` on the shell; returns how to end."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._follow(adapter)) for adapter in self._shell.adapters]
            running.append(tasks.create_task(self._handle()))
            running.append(tasks.create_task(self._tick()))
            how = await self._shell.ending
            for task in running:
                task.cancel()
        return how

    async def _tick(self) -> None:
        shell = self._shell
        await shell.synced.wait()
        while True:
            begun, asked = shell.clock.read(), shell.coming_tick
            shell.coming_tick = asyncio.get_running_loop().create_future()
            report = await self._run("tick", shell.agent.tick)
            if report is not None:
                shell.ready.set()
                failed, self._failed = self._failed, []
                for handed in failed:
                    shell.inbox.put_nowait(handed)
            asked.set_result(report)
            rest = shell.period_s - (shell.clock.read().now - begun.now)
            await asyncio.sleep(SHORTEST_GAP_S)
            try:
                async with asyncio.timeout(max(0.0, rest - SHORTEST_GAP_S)):
                    await shell.wake.wait()
            except TimeoutError:
                pass
            shell.wake.clear()

    async def _follow(self, adapter: Adapter) -> None:
        async for event in adapter.workloads():
            self._shell.take(event)

    async def _handle(self) -> None:
        """Whatever has arrived while the ring was busy is one batch: a thousand arrivals are a few runs."""
        while True:
            batch = [await self._shell.inbox.get()]
            while not self._shell.inbox.empty():
                batch.append(self._shell.inbox.get_nowait())
            handed = [h for h in batch if h.event.workload is not None]
            self._unsynced -= len(batch) - len(handed)
            if handed:
                await self._change(handed)
            if self._unsynced <= 0:
                self._shell.synced.set()

    async def _change(self, batch: list[Handed]) -> None:
        """One run for all; should it fail, one for each, so that what cannot be handled harms nobody else."""
        report = await self._run(
            "change", self._shell.agent.change, [self._translated(handed.event) for handed in batch]
        )
        if report is None and len(batch) > 1:
            for handed in batch:
                await self._change([handed])
            return
        for handed in batch:
            self._answer(handed, report)

    def _translated(self, event: WorkloadEvent) -> WorkloadEvent:
        return event if event.workload is None else event._replace(workload=self._shell.translate(event.workload))

    async def _run(self, cause: Cause, work: Callable[..., Report], *args: object) -> Report | None:
        """None when it failed."""
        try:
            report = await self._shell.on_ring(work, *args, self._shell.clock.read())
        except Exception as e:  # whatever it is stays in this run
            self._fail(cause, e)
            return None
        self._shell.fault, self._shell.report = "", report
        for listener in self._after_run:
            try:
                listener(report)
            except Exception as e:
                self._fail(cause, e)
        return report

    def _fail(self, cause: Cause, error: Exception) -> None:
        fault = f"{type(error).__name__}: {error}"
        if fault != self._shell.fault:
            log.error("ring.failed", cause=cause, error=fault, exc_info=error)
        self._shell.fault = fault
        for listener in self._on_failure:
            listener(cause)

    def _answer(self, handed: Handed, report: Report | None) -> None:
        event, answer = handed
        if answer is None:
            if report is None and event.type != "DELETED":
                self._failed.append(handed)
        elif answer.done():
            return  # whoever asked has gone
        elif report is not None:
            answer.set_result(report)
        elif event.workload is not None:
            answer.set_exception(QosError(f"the agent failed at {event.workload.target}: {self._shell.fault}"))
