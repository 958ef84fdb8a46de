"""The life of one agent on one host, from start to stop."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from j10ce.adapters.static import StaticAdapter
from j10ce.agent.cache import Cache, HistoryKeeper
from j10ce.agent.config import AgentConfig
from j10ce.agent.controllers import Controllers
from j10ce.agent.host_applications import HostApplications
from j10ce.agent.plugins.process import PluginProcess
from j10ce.agent.report.applied_changes import Trail
from j10ce.agent.report.metrics import Metrics
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring.evictions import Evictions
from j10ce.agent.ring.own_cgroup import OwnCgroup
from j10ce.agent.ring.pressure import Pressure
from j10ce.agent.ring.ring import Agent, Report
from j10ce.agent.ring.runner import Runner, Shell, Stop
from j10ce.agent.socket import answers
from j10ce.agent.socket.operations import Operations
from j10ce.agent.socket.routes import Context
from j10ce.agent.socket.serve import Server, bind, bind_metrics, unbind
from j10ce.agent.sync.enrolment import Enrolment
from j10ce.agent.sync.reporter import ControlPlane
from j10ce.kernel.owner import TreeOwner
from j10ce.kernel.systemd.dbus import watch_reloads
from j10ce.policy.entitlement.ledger import Line

if TYPE_CHECKING:
    from j10ce.agent.sync.kube_node import KubeNode

log = structlog.get_logger()
Notify = Callable[..., None]
PATIENCE_S: Final = 60.0  # of an agent that waits for its first workload
DISK_S: Final = 5.0  # of an agent that ends, for what it has learned
LIVE: Final = frozenset({"period", "controllers", "disabled", "armed", "drift"})  # may change while it runs


@dataclass(kw_only=True)
class Host:
    """Its parts, and what they do together. `build` makes one, inside a running event loop."""

    settings: AgentConfig
    load: Callable[[], AgentConfig]  # reads the configuration again; raises Invalid
    until_idle: bool
    unwritable: str  # why nothing can be written on this machine; empty when it can
    cache: Cache
    owned: TreeOwner
    own: OwnCgroup
    controllers: Controllers
    plugins: PluginProcess | None
    agent: Agent
    shell: Shell
    local: StaticAdapter
    applications: HostApplications
    pressure: Pressure
    operations: Operations
    metrics: Metrics
    trail: Trail
    usage: Usage
    histories: HistoryKeeper
    kube: KubeNode | None
    plane: ControlPlane | None
    enrolment: Enrolment | None

    def __post_init__(self) -> None:
        self._socket = Path(self.settings.run_dir) / "agent.sock"
        self._leaving: asyncio.Queue[str] = asyncio.Queue()
        self._promised = self.agent.promised  # as they are on disk
        self._idle_since = self.shell.clock.read().now  # of an agent that ends when it is idle

    async def run(self, notify: Notify) -> int:
        """Serve until someone stops it; the exit code. `notify` reaches whoever started the process."""
        sockets = self._bind()
        self.pressure.start()
        self._say_hello()
        if self.agent.armed and self.settings.protect_self:
            await self.shell.on_ring(self.own.enter, self.agent.kernel)
        server = Server(Context(self.operations, self.metrics, self.reload), self.settings.socket_group)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(server.run(sockets[0]))]
            beside += [tasks.create_task(server.run_metrics(sock)) for sock in sockets[1:]]
            beside += [tasks.create_task(self.plane.run())] if self.plane else []
            beside += [tasks.create_task(self.enrolment.run())] if self.enrolment else []
            beside += [tasks.create_task(self.kube.run(self._wanted))] if self.kube else []
            beside += [tasks.create_task(watch_reloads(self._on_reload, self.owned.bus))] if self.owned.bus else []
            beside.append(tasks.create_task(self._live(notify)))
            beside.append(tasks.create_task(self._leave()))
            listeners: list[Callable[[Report], None]] = [
                self.metrics.observe,
                self._after_run,
                Evictions(self.shell.adapters, self.plane.changed.set if self.plane else lambda: None),
            ]
            how = await Runner(self.shell, listeners, [self.metrics.failed]).run()
            notify("STOPPING=1")
            for task in beside:
                task.cancel()
        code = await self._end(how)
        for sock in sockets[1:]:
            sock.close()
        unbind(self._socket, sockets[0])
        return code

    def stop(self, revert: bool, why: str) -> None:
        self.shell.stop(Stop(revert, why))

    def leave(self, why: str) -> None:
        """Settings stay for whoever comes next; on Kubernetes nobody does where the agents were uninstalled."""
        self._leaving.put_nowait(why)

    async def reload(self) -> dict[str, Any]:
        """Raises Invalid; then the old configuration stays."""
        return {"reloaded": True, "needsRestart": self.reconfigure()}

    def reconfigure(self) -> list[str]:
        """Take what can change while running; returns the fields that need a restart. Raises Invalid."""
        settings = self.load()
        old, new = msgspec.structs.asdict(self.settings), msgspec.structs.asdict(settings)
        changed = {name for name in new if new[name] != old[name]}
        self.settings = replace(self.settings, **{name: new[name] for name in changed & LIVE})
        self.shell.period_s = self.settings.period.seconds
        self.agent.yields = self.settings.drift == "yield"
        if changed & {"controllers", "disabled"}:
            self.agent.decide_with(*self.controllers.deciders(self.settings))
        if "armed" in changed:
            self.agent.armed = self._may_write()
        log.info("config.loaded", changed=sorted(changed))
        return sorted(changed - LIVE)

    def _may_write(self) -> bool:
        return may_write(self.settings, self.cache, self.unwritable)

    def _bind(self) -> list[socket.socket]:
        sockets = [bind(self._socket, int(self.settings.socket_mode, 8), self.settings.socket_group)]
        if self.settings.metrics:
            sockets.append(bind_metrics(self.settings.metrics))
        return sockets

    def _on_reload(self) -> None:
        self.agent.reread()
        self.shell.wake.set()

    def _say_hello(self) -> None:
        facts = self.agent.observer.facts
        log.info("agent.start", node=facts.name, cgroup=facts.cgroup, tree=self.agent.kernel.tree.name, pid=os.getpid())
        if self.unwritable:
            log.warning("agent.unarmed", why=self.unwritable, means="it plans and explains, and writes nothing")

    async def _live(self, notify: Notify) -> None:
        """Ready once the ring has run; then a sign of life every second, as long as it runs."""
        await self.shell.ready.wait()
        if self.plane:
            self.plane.changed.set()  # there is a first report
        # What is there by then stays: the collector need not walk it again in the middle of an arrival.
        gc.collect()
        gc.freeze()
        notify("READY=1")
        while True:
            await asyncio.sleep(1.0)
            await self.shell.on_ring(notify, "WATCHDOG=1")

    async def _leave(self) -> None:
        why, life = await self._leaving.get(), self.kube.life if self.kube else None
        removed = life is not None and await life.fate() == "removed"
        self.stop(removed, f"{why}, removed for good" if removed else why)

    async def _wanted(self, wanted: bool) -> None:
        """Removed for good, the agent gives everything back at once and is silent until it is stopped, or wanted."""
        if wanted:
            self.agent.armed = self._may_write()
        else:
            self.agent.armed = False
            await self.shell.on_ring(self._retire)
        self.shell.wake.set()

    def _after_run(self, report: Report) -> None:
        if report.cause == "tick":
            named = report.snap.strategy.host_applications
            for event in (*self.local.sweep(), *self.applications.follow(named, self.agent.workloads.values())):
                self.shell.take(event)
            self._remember(tuple(report.resolution.ledger))
        self.pressure.follow(report)
        self.trail.ran(report)
        self.operations.note_joined(report)
        self.operations.forget_ended()
        if self.plane and report.cause == "change":
            self.plane.changed.set()
        if self.until_idle:
            self._end_when_idle(report.at.now)

    def _remember(self, promised: tuple[Line, ...]) -> None:
        if promised != self._promised:
            self.cache.keep_promises(promised)
        self._promised = promised

    def _end_when_idle(self, now: float) -> None:
        """With the last workload; without any, when whoever started us never came."""
        if self.local.known():
            self._idle_since = math.inf
        elif self._idle_since == math.inf or now - self._idle_since > PATIENCE_S:
            self.stop(True, "no workload is left")

    async def _end(self, how: Stop) -> int:
        """Settings stay, or everything goes back; either way what must be known next time is on disk."""
        log.info("agent.stop", revert=how.revert, why=how.why)
        if self.plane:
            self.usage.save()
        await self.histories.finish(DISK_S)
        code = 0
        if self.agent.resolution:
            self._remember(tuple(self.agent.resolution.ledger))
        await self.shell.on_ring(self.agent.kernel.thaw)
        if how.revert:
            code = await self.shell.on_ring(self._retire)
        if self.plugins:
            self.plugins.close()
        self.pressure.close()
        self.shell.close()
        self.agent.kernel.close()
        self.owned.close()
        return code

    def _retire(self) -> int:
        """On the ring: leave our own cgroup, give back every value, remove what is empty."""
        self.own.leave(self.agent.kernel)
        done = answers.reverted(self.agent.revert(self.shell.clock.read()))
        for left in done["left"]:
            log.warning("revert.left", setting=left["setting"], why=left["reason"])
        for kept in done["kept"]:
            log.warning("revert.kept", target=kept["target"], why=kept["reason"])
        self.cache.forget_run()
        return int(bool(done["left"]))


def may_write(settings: AgentConfig, cache: Cache, unwritable: str) -> bool:
    """Its configuration lets it, no order to disarm stops it, and it is able to."""
    return settings.armed and not cache.orders().disarmed and not unwritable
