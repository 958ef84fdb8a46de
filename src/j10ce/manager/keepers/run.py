"""What the leader alone does, for as long as it leads: keep what is derived from objects true."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import structlog

from j10ce.errors import Denied, StoreError
from j10ce.http.retry import end_if_cancelled
from j10ce.manager.documents.silence import Hear
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.expiry import expire
from j10ce.manager.keepers.nodes import judge_nodes
from j10ce.manager.keepers.orphans import collect
from j10ce.manager.keepers.overcommit import keep_overcommit
from j10ce.manager.keepers.overcommit_file import Strategies
from j10ce.manager.keepers.traces import tell_applied
from j10ce.manager.policies.history import ensure_built_in, keep_history
from j10ce.manager.policies.keeper import LOOK_S, judge_policies
from j10ce.manager.policies.roster import ReportedRoster, Roster
from j10ce.manager.policies.transitions import Tell, ignore
from j10ce.manager.telemetry.trace import Tracer
from j10ce.policy.profiles import builtin
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT
from j10ce.store.store import Store

log = structlog.get_logger()
RETRY_S: Final = 5.0
Keep = Callable[[], Awaitable[None]]


class Surroundings(NamedTuple):
    """What differs between a fleet of hosts and a cluster of Kubernetes."""

    roster: Callable[[Hear], Roster] = ReportedRoster  # a fresh one for every judge: it tells each node once
    tell: Tell = ignore
    also: Mapping[str, Keep] = {}
    longest_rest_s: float = LOOK_S  # between judgements of policies, however long one takes
    collects: bool = True  # what has lost its owners; Kubernetes does it by itself


HOSTS: Final = Surroundings()


async def keep_all(
    store: Store,
    view: View,
    wall: Callable[[], float],
    tracer: Tracer,
    *,
    namespace_limit: int = NAMESPACE_LIMIT,
    strategies: Callable[[], Strategies] = Strategies,
    around: Surroundings = HOSTS,
) -> None:
    """For ever. Every keeper finds out by itself where its predecessor, on this manager or another, came to."""
    judge = partial(
        judge_policies, tell=around.tell, namespace_limit=namespace_limit, longest_rest_s=around.longest_rest_s
    )
    keeps: dict[str, Keep] = {
        "built-in profiles": lambda: _built_in(store),
        "history": lambda: keep_history(store, view),
        **({"orphans": lambda: collect(store, view)} if around.collects else {}),
        "policies": lambda: judge(store, view, wall, roster=around.roster(view.silence.of)),
        "nodes": lambda: judge_nodes(store, view, wall),
        "expiry": lambda: expire(store, view, wall),
        "overcommit": lambda: keep_overcommit(store, view, wall, strategies),
        "traces": lambda: tell_applied(view, tracer),
        **around.also,
    }
    async with asyncio.TaskGroup() as group:
        for name, keep in keeps.items():
            group.create_task(contain(name, keep))


async def contain(name: str, keep: Keep) -> None:
    """A fault of ours in one keeper is logged, and stops neither the others nor the API; it begins again in a while."""
    while True:
        failure: BaseException | None = None
        try:
            await persist(keep)
        except* Exception as e:
            failure = e  # logged below: what is raised inside of `except*` comes out wrapped
        if failure:
            end_if_cancelled()
            log.error("keeper.fail", keeper=name, exc_info=failure)
            await asyncio.sleep(RETRY_S)


async def persist(keep: Keep) -> None:
    """A store that is away or full stops the bookkeeping, not the manager: reads and watches go on.

    So does one that refuses us: an API server that has just started does not know anybody's rights yet.
    """
    while True:
        failure: BaseException | None = None
        try:
            # In a task of its own: a TaskGroup that fails leaves its task looking cancelled, before Python 3.13.
            await asyncio.get_running_loop().create_task(awaited(keep))
        except* (StoreError, Denied) as e:
            failure = e
        if failure:
            end_if_cancelled()
            log.error("store.fail", error=str(_first(failure)))
            await asyncio.sleep(RETRY_S)


async def awaited(keep: Keep) -> None:
    """As a coroutine, which is what a task is made of."""
    await keep()


def _first(e: BaseException) -> BaseException:
    return _first(e.exceptions[0]) if isinstance(e, BaseExceptionGroup) else e


async def _built_in(store: Store) -> None:
    await ensure_built_in(store, builtin())
    await asyncio.Event().wait()
