"""A control plane without processes: managers with clocks of their own on one store, and nodes that obey and report.

Keepers are run one look at a time, so nothing here waits for a timer; `Clock.wait` is what passes time for everyone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import Terms
from j10ce.manager.documents.view import View
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.manager.keepers import expiry, nodes, orphans, overcommit
from j10ce.manager.keepers.overcommit_file import Strategies
from j10ce.manager.policies import history
from j10ce.manager.policies.keeper import Judge
from j10ce.manager.policies.reservations import Reservations
from j10ce.manager.policies.roster import ReportedRoster
from j10ce.model.kinds import (
    Capability,
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeReport,
    PolicyRevision,
    QoSProfile,
    ReservationReport,
    Workload,
)
from j10ce.model.quantity import Quantity
from j10ce.model.schema import parse
from j10ce.model.stored import key_of
from j10ce.policy.document.document import NodeDocument, reference
from j10ce.store.store import Store
from j10ce.testing.build import WALL

T = TypeVar("T")
TICK_S = 1.0


class Clock:
    """True time; every machine's wall clock differs from it by its own skew."""

    def __init__(self) -> None:
        self.now = 0.0
        self._managers: list[Manager] = []

    def wall(self, skew_s: float = 0.0) -> float:
        return WALL + self.now + skew_s

    def follow(self, manager: Manager) -> None:
        self._managers.append(manager)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds / TICK_S)):
            self.now += TICK_S
            for manager in self._managers:
                manager.view.silence.tick()


class Manager:
    """One process. It leads whenever it is asked for a `round`."""

    def __init__(self, store: Store, clock: Clock, skew_s: float = 0.0) -> None:
        self.store, self.clock, self.skew_s = store, clock, skew_s
        self.view = View(store, lambda: clock.now)
        self.namespace_limit = 100  # percent
        self._judge: Judge | None = None
        self._heard = ExitStack()
        clock.follow(self)

    @property
    def wall(self) -> float:
        return self.clock.wall(self.skew_s)

    async def round(self) -> None:
        await self.caught_up()
        await self._judged().round(self.wall)
        await self.caught_up()
        await history.settle(self.store, self.view, self.policies())
        for node in self.view.all(NodeQoS):
            await nodes.judge(self.store, self.view, node, self.wall)
        await self.caught_up()
        self._doubted = await orphans.look(self.store, self.view, self._doubted)
        await expiry.look(self.store, self.view, self._watched, self.wall)
        await self.caught_up()
        await overcommit.look(self.store, self.view, self.view.all(NodeQoS), self.wall, Strategies())
        await self.caught_up()

    def resign(self) -> None:
        """It forgets what it knew as a leader, and goes on as a follower."""
        self._judge = None
        self._heard.close()

    async def what_if(self, wanted: Workload) -> str:
        """The node that it would choose."""
        with acting(Act(SYSTEM)):
            told = await Placements(self.store, self.view, lambda: self.wall).place(wanted, Terms(dry=True))
        return told.node

    def policies(self) -> list[QoSProfile | MinimalReservationPolicy]:
        return [*self.view.all(QoSProfile), *self.view.all(MinimalReservationPolicy)]

    def policy(self, name: str) -> MinimalReservationPolicy:
        return next(p for p in self.view.all(MinimalReservationPolicy) if p.metadata.name == name)

    def node(self, name: str) -> NodeQoS:
        return next(n for n in self.view.all(NodeQoS) if n.metadata.name == name)

    def document(self, node: str) -> NodeDocument:
        return parse(self.view.documents.of(node).data, NodeDocument)

    async def caught_up(self) -> None:
        """Until the view holds what the store does."""
        for kind, mirror in self.view.mirrors.items():
            while {key_of(o): o for o in (await self.store.list(kind)).items} != mirror.held:  # noqa: ASYNC110
                await asyncio.sleep(0)  # a turn of the loop, which takes no time

    def _judged(self) -> Judge:
        if self._judge is None:
            fleet = Reservations(ReportedRoster(self.view.silence.of), limit_percent=self.namespace_limit)
            self._judge = Judge(self.store, self.view, fleet)
            self._heard.enter_context(self.view.heard(self._judge.reports.take))
            self._judge.reports.take_over(self.policies())
            self._doubted: set[str] = set()
            self._watched = expiry.Watched(lambda: self.view.silence.now)
        return self._judge


class Agent:
    """A node: it obeys the document of the manager that it asks, and reports by its own clock."""

    def __init__(self, name: str, *, cpu: str = "4211m", memory: str = "17Gi", skew_s: float = 0.0) -> None:
        self.name, self.skew_s = name, skew_s
        self.capacity = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
        self.runs: dict[str, int] = {}  # workloads on units, by policy
        self.failing: dict[str, str] = {}
        self.best_effort = "0"
        self.labels: dict[str, str] = {}

    async def report(self, manager: Manager, **more: Any) -> NodeQoS:
        await manager.caught_up()
        told = replace(self.said(manager), **more)
        if not any(n.metadata.name == self.name for n in manager.view.all(NodeQoS)):
            await manager.store.put(NodeQoS(metadata=Meta(name=self.name, labels=self.labels)))
            await manager.caught_up()
        found = manager.node(self.name)
        status = replace(found.status, node=told)
        put = await manager.store.put(replace(found, status=status), part="status")
        await manager.caught_up()
        assert isinstance(put, NodeQoS)
        return put

    def said(self, manager: Manager) -> NodeReport:
        document = manager.document(self.name)
        heartbeat = datetime.fromtimestamp(manager.clock.wall(self.skew_s), UTC)
        held = [self._reservation(p, document) for p in document.policies]
        claimed: dict[str, dict[str, Quantity]] = {}
        for policy, told in zip(document.policies, held, strict=True):
            has = claimed.setdefault(policy.metadata.namespace, {})
            for name, q in told.amount.items():
                has[name] = Quantity(q.amount + (has[name].amount if name in has else 0))
        return NodeReport(
            heartbeat=heartbeat,
            armed=True,
            document=document.hash,
            capacity=self.capacity,
            claimed=claimed,
            best_effort={"memory": Quantity.parse(self.best_effort)},
            capabilities=tuple(Capability(feature=knob, ok=True) for knob in ("cpu.weight", "memory.min")),
            reservations=tuple(held),
            failing=self.failing,
        )

    def _reservation(self, policy: MinimalReservationPolicy, document: NodeDocument) -> ReservationReport:
        units, runs = document.units.get(reference(policy), 0), self.runs.get(policy.metadata.name, 0)
        least = {"cpu": policy.spec.minimum.cpu, "memory": policy.spec.minimum.memory}
        paid = {name: Quantity(q.amount * runs) for name, q in least.items() if isinstance(q, Quantity)}
        return ReservationReport(
            source=reference(policy),
            generation=policy.metadata.generation,
            workloads=runs,
            units=units,
            used=min(units, runs),
            charged=runs,
            amount=paid if runs else {},
        )


@asynccontextmanager
async def running(*managers: Manager) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(manager.view.run()) for manager in managers]
        for manager in managers:
            await manager.view.ready()
        yield
        for manager in managers:
            manager.resign()
        for task in tasks:
            task.cancel()


async def pass_time(manager: Manager, seconds: int, *agents: Agent) -> None:
    """Reports every ten seconds, and a round of the leader after each."""
    for _ in range(seconds // 10):
        manager.clock.wait(10)
        for agent in agents:
            await agent.report(manager)
        await manager.round()


async def stored(store: Store, kind: type[T]) -> list[T]:
    return [obj for obj in (await store.list(kind.__name__)).items if isinstance(obj, kind)]


async def edit(store: Store, name: str, **spec: Any) -> MinimalReservationPolicy:
    found = await store.get("MinimalReservationPolicy", "default", name)
    assert isinstance(found, MinimalReservationPolicy)
    put = await store.put(replace(found, spec=replace(found.spec, **spec)))
    assert isinstance(put, MinimalReservationPolicy)
    return put


def condition(obj: Any, type_: str) -> Any:
    return next(c for c in obj.status.conditions if c.type == type_)


def placed(policy: MinimalReservationPolicy) -> dict[str, int]:
    return {w.node: w.units for w in policy.status.witness}


def numbers(found: list[PolicyRevision]) -> list[int]:
    return sorted(r.revision for r in found)
