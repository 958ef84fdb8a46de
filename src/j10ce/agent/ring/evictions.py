"""Evictions that the ring decided on are asked for: by the adapter that knows who made the workload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from j10ce.adapters.adapter import Adapter
from j10ce.agent.ring.ring import Report
from j10ce.errors import NotFound, QosError
from j10ce.kernel.actions import asked
from j10ce.model.plan import Action

log = structlog.get_logger()


class Evictions:
    """A listener of the runner. What is asked for stands in the journal, so that no restart asks again at once.

    What the ring does not wish for any more is withdrawn, and so is everything when it may not act; `moved` hears of
    every change.
    """

    def __init__(self, adapters: Iterable[Adapter], moved: Callable[[], None] = lambda: None) -> None:
        self._adapters = tuple(adapters)
        self._moved = moved
        self._under_way: set[asyncio.Task[None]] = set()

    def __call__(self, report: Report) -> None:
        if report.cause != "tick":  # deeds follow from what was measured
            return
        fresh = asked(report.outcome.deeds)
        for action in fresh:
            task = asyncio.get_running_loop().create_task(self._ask(action))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        wanted = {a.target: a.reason for a in (*report.plan.pending, *fresh)} if report.armed else {}
        moved = [adapter.still_wanted(wanted, report.at.wall) for adapter in self._adapters]
        if any(moved):
            self._moved()

    async def _ask(self, action: Action) -> None:
        """Of the adapters, the one that has the workload."""
        for adapter in self._adapters:
            try:
                await adapter.evict(action.target, action.reason)
            except NotFound:
                continue
            except QosError as e:
                log.warning("evict.fail", workload=action.target, why=action.reason, error=str(e))
            return
        log.warning("evict.fail", workload=action.target, why=action.reason, error="no adapter has it")
