"""Evictions that the ring decided on are asked for: by the adapter that knows who made the workload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from j10ce.adapters.adapter import Adapter
from j10ce.agent.ring.ring import Report
from j10ce.errors import NotFound, QosError
from j10ce.kernel.actions import asked
from j10ce.model.plan import Action

log = structlog.get_logger()


class Evictions:
    """A listener of the runner. What is asked for stands in the journal, so that no restart asks again at once."""

    def __init__(self, adapters: Iterable[Adapter]) -> None:
        self._adapters = tuple(adapters)
        self._under_way: set[asyncio.Task[None]] = set()

    def __call__(self, report: Report) -> None:
        for action in asked(report.outcome.deeds):
            task = asyncio.get_running_loop().create_task(self._ask(action))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

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
