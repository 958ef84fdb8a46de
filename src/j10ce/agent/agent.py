"""One agent on one host: its parts put together, and its life from start to stop."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec.structs import replace

from j10ce.adapters.adapter import Adapter
from j10ce.adapters.static import StaticAdapter
from j10ce.agent.cache import Cache, Histories
from j10ce.agent.config import KUBE, AgentConfig
from j10ce.agent.plugins.process import PluginProcess, installed
from j10ce.agent.report.applied_changes import Trail
from j10ce.agent.report.metrics import Metrics
from j10ce.agent.report.report import node_report
from j10ce.agent.report.size import fitted
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring.contained import Guard
from j10ce.agent.ring.holds import live
from j10ce.agent.ring.own_cgroup import OwnCgroup
from j10ce.agent.ring.pressure import Pressure
from j10ce.agent.ring.ring import Agent, Report
from j10ce.agent.ring.runner import Shell, Stop
from j10ce.agent.socket import answers
from j10ce.agent.socket.operations import Operations
from j10ce.agent.socket.routes import Context
from j10ce.agent.socket.serve import Server, bind, bind_metrics, unbind
from j10ce.agent.socket.whereabouts import Places
from j10ce.agent.sync.enrolment import Enrolment, wanted
from j10ce.agent.sync.sync import Sync
from j10ce.control.builtin import BUILTIN, build
from j10ce.control.controller import Controller, Steady
from j10ce.control.own import own_claim
from j10ce.daemon.clock import SystemClock
from j10ce.errors import Corrupt
from j10ce.host import child
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import Hierarchies
from j10ce.http.client import Peer
from j10ce.kernel import owner
from j10ce.kernel.guard import Guard as WriteGuard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.owner import Owner
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.systemd.dbus import watch_reloads
from j10ce.model.kinds import Hold, NodeReport
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import APART
from j10ce.observe import node as machine
from j10ce.observe.cgroup import CgroupSensor
from j10ce.observe.groups import GroupTree
from j10ce.observe.node import NodeSensor
from j10ce.observe.observer import Observer
from j10ce.observe.sensor import Sensor
from j10ce.observe.siblings import Siblings
from j10ce.policy.document.document import NodeDocument, digest
from j10ce.policy.entitlement.ledger import Line
from j10ce.policy.profiles import builtin

if TYPE_CHECKING:
    from j10ce.agent.sync.kube_node import KubeNode
    from j10ce.agent.sync.kube_sync import KubeSync

log = structlog.get_logger()
Tell = Callable[..., None]
PATIENCE_S: Final = 60.0  # of an agent that waits for its first workload
DISK_S: Final = 5.0  # of an agent that ends, for what it has learned
LIVE: Final = frozenset({"period", "controllers", "disabled", "armed", "drift"})  # may change while it runs


class Host:
    """Built inside a running event loop."""

    def __init__(self, settings: AgentConfig, *, until_idle: bool) -> None:
        self.settings = settings
        self.until_idle = until_idle
        self.socket = Path(settings.run_dir) / "agent.sock"
        self.cache = Cache(Path(settings.run_dir), Path(settings.state_dir))
        hierarchies, files = Hierarchies.discover(), Files()
        node = machine.discover(settings.node_name, hierarchies, files)
        self.owned = owned = owner.choose(hierarchies, settings.tree, settings.top)
        self.unwritable = unwritable(hierarchies, owned)
        self.kube = self._kube(node.name, hierarchies)
        self.own = OwnCgroup(owned.tree, wanted=self.kube is None)
        self.plugins = self._plugins()
        observer = _observer(node, hierarchies, files, owned)
        guard = WriteGuard.of_this_process(lambda: float(observer.facts.memory))
        kernel = Kernel(owned.tree, owned.backends, self._journal(node.boot_id), guard=guard)
        self.agent = Agent(kernel, observer, self._guards(), self._document(node.name))
        self.agent.quick = self._quick()
        self.agent.own = own_claim(self._controllers())
        remembered = self.cache.holds()
        self.agent.hold(remembered.items, remembered.released)
        self.agent.armed = self._may_write()
        self.agent.yields = settings.drift == "yield"
        self.agent.promised = self._promised = self.cache.promises()
        places = Places(hierarchies, owned)
        self.local = StaticAdapter(places.surviving(self.cache.workloads(), node), places)
        adapters: list[Adapter] = [self.local, *([self.kube.adapter] if self.kube else [])]
        self.shell = Shell(self.agent, adapters, SystemClock(), settings.period.seconds)
        self.operations = Operations(self.shell, self.local, places, self.cache, settings)
        self.operations.unwritable = self.unwritable
        self.metrics = Metrics()
        self.usage = Usage(self.cache.histories(), self._keep_histories)
        self.sync = self._sync(node.name)
        self.enrolment = self._enrolment(node.name)
        if self.sync:
            self.operations.server = self.sync.told
        self.trail = Trail(self.agent.document)
        self.pressure = Pressure(self.shell, _layout(hierarchies, files, owned))
        self._leaving: asyncio.Queue[str] = asyncio.Queue()
        self._saving: asyncio.Future[None] | None = None
        self._idle_since = self.shell.clock.read().now  # of an agent that ends when it is idle

    async def run(self, tell: Tell) -> int:
        """Serve until told to stop; the exit code."""
        sockets = self._bind()
        self.shell.after_run += [self.metrics.observe, self._after_run]
        self.shell.on_failure.append(self.metrics.failed)
        self.pressure.start()
        self._say_hello()
        if self.agent.armed and self.settings.protect_self:
            await self.shell.on_ring(self.own.enter, self.agent.kernel)
        server = Server(Context(self.operations, self.metrics), self.settings.socket_group)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(server.run(sockets[0]))]
            beside += [tasks.create_task(server.run_metrics(sock)) for sock in sockets[1:]]
            beside += [tasks.create_task(self.sync.run())] if self.sync else []
            beside += [tasks.create_task(self.enrolment.run())] if self.enrolment else []
            beside += [tasks.create_task(self.kube.run(self._wanted))] if self.kube else []
            beside += [tasks.create_task(watch_reloads(self._on_reload, self.owned.bus))] if self.owned.bus else []
            beside.append(tasks.create_task(self._live(tell)))
            beside.append(tasks.create_task(self._leave()))
            how = await self.shell.run()
            tell("STOPPING=1")
            for task in beside:
                task.cancel()
        code = await self._end(how)
        for sock in sockets[1:]:
            sock.close()
        unbind(self.socket, sockets[0])
        return code

    def stop(self, revert: bool, why: str) -> None:
        self.shell.stop(Stop(revert, why))

    def leave(self, why: str) -> None:
        """Settings stay for whoever comes next; on Kubernetes nobody does where the agents were uninstalled."""
        self._leaving.put_nowait(why)

    def reconfigure(self, settings: AgentConfig) -> list[str]:
        """Take what can change while running; returns the fields that need a restart."""
        old, new = msgspec.structs.asdict(self.settings), msgspec.structs.asdict(settings)
        changed = {name for name in new if new[name] != old[name]}
        self.settings = replace(self.settings, **{name: new[name] for name in changed & LIVE})
        self.shell.period_s = self.settings.period.seconds
        self.agent.yields = self.settings.drift == "yield"
        if changed & {"controllers", "disabled"}:
            self.agent.quick = self._quick()
            self.agent.own = own_claim(self._controllers())
            self.agent.guards = self._guards()  # one assignment: the ring sees the old list or the new one
        if "armed" in changed:
            self.agent.armed = self._may_write()
        log.info("config.loaded", changed=sorted(changed))
        return sorted(changed - LIVE)

    def _may_write(self) -> bool:
        """Told to by its configuration, not stopped by an order to disarm, and able to."""
        return self.settings.armed and not self.cache.orders().disarmed and not self.unwritable

    # ------------------------------------------------------------------ parts

    def _plugins(self) -> PluginProcess | None:
        names = [name for name in installed() if name not in (*BUILTIN, *self.settings.disabled)]
        if not names:
            return None
        told = {name: raw for name, raw in self.settings.controllers.items() if name in names}
        return PluginProcess(names, child.python("j10ce.agent.plugins.child", msgspec.json.encode(told).decode()))

    def _controllers(self) -> list[Controller]:
        told = {name: raw for name, raw in self.settings.controllers.items() if name in BUILTIN}
        if self.own.path:
            told["own"] = {"group": self.own.path, **told.get("own", {})}
        return [c for c in build(told) if c.name not in self.settings.disabled]

    def _guards(self) -> list[Guard]:
        plugins = self.plugins.controllers() if self.plugins else []
        return [Guard(controller) for controller in (*self._controllers(), *plugins)]

    def _quick(self) -> list[Controller]:
        """Of their own: what those of the whole tree remember must not be mixed with a part of it."""
        return [c for c in self._controllers() if isinstance(c, Steady) and c.steady]

    def _journal(self, boot_id: str) -> Journal:
        """A damaged journal is told and kept; what can be read of it still serves to give values back."""
        path = Path(self.settings.run_dir) / "journal"
        try:
            return Journal.open(path, boot_id)
        except Corrupt as e:
            self.cache.warnings.append(str(e))
            log.error("journal.damaged", error=str(e))
            return Journal.open(path, boot_id, salvage=True)

    def _document(self, node: str) -> NodeDocument:
        """The last good one; without any, the built-in profiles."""
        kept = self.cache.document()
        if kept is not None and kept.node == node:
            return kept
        bare = NodeDocument(node=node, profiles=builtin())
        return replace(bare, hash=digest(bare))

    def _kube(self, node: str, hierarchies: Hierarchies) -> KubeNode | None:
        if not self.settings.server.startswith(KUBE):
            return None
        from j10ce.agent.sync.kube_node import KubeNode  # other hosts need none of it

        return KubeNode(self.settings, node, self.cache, hierarchies)

    def _sync(self, node: str) -> Sync | KubeSync | None:
        if self.kube:
            return self.kube.sync(self, self.agent.document)
        return Sync(self._peer(), node, self, self.agent.document) if self.settings.server else None

    def _enrolment(self, node: str) -> Enrolment | None:
        bootstrap = self.settings.bootstrap_token_file
        if self.kube or not self.settings.server or not wanted(self._peer(), bootstrap):
            return None
        return Enrolment(self._peer(), node, bootstrap, lambda: self.shell.clock.read().wall)

    def _peer(self) -> Peer:
        return Peer(self.settings.server, self.settings.token_file, self.settings.ca_file)

    async def obey(self, document: NodeDocument) -> None:
        self.trail.expect(document, self.shell.clock.read())
        await self.shell.on_ring(self.agent.obey, document)
        self.shell.wake.set()
        await self.cache.aside(self.cache.keep_document, document)

    def node_report(self) -> NodeReport | None:
        report = self.shell.report
        if report is None:
            return None
        self.usage.observe(report)
        demand, predicted = self.usage.demand(report), self.usage.predicted(report.at.wall)
        made = replace(node_report(report, self.agent.document), demand=demand, predicted=predicted)
        told = self.sync.conditions() if self.sync else ()
        return fitted(replace(made, applied=self.trail.applied, conditions=(*made.conditions, *told)))

    def _keep_histories(self, histories: Histories) -> None:
        """On a thread: a disk that hangs does not hold up the event loop."""
        if self._saving is None or self._saving.done():
            self._saving = asyncio.get_running_loop().run_in_executor(None, self.cache.keep_histories, histories)

    def reported(self, report: NodeReport) -> None:
        self.trail.told(report)

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        """Those in force: one that expired while nobody could be told is nobody's business any more."""
        return live(self.agent.holds, self.shell.clock.read().wall), self.agent.released

    # ------------------------------------------------------------------ life

    def _bind(self) -> list[socket.socket]:
        sockets = [bind(self.socket, int(self.settings.socket_mode, 8), self.settings.socket_group)]
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

    async def _live(self, tell: Tell) -> None:
        """Ready once the ring has run; then a sign of life every second, as long as it runs."""
        await self.shell.ready.wait()
        if self.sync:
            self.sync.changed.set()  # there is a first report
        # What is there by then stays: the collector need not walk it again in the middle of an arrival.
        gc.collect()
        gc.freeze()
        tell("READY=1")
        while True:
            await asyncio.sleep(1.0)
            await self.shell.on_ring(tell, "WATCHDOG=1")

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
            self.local.sweep()
            self._remember(tuple(report.resolution.ledger))
        self.pressure.follow(report)
        self.trail.ran(report)
        self.operations.note_joined(report)
        self.operations.forget_ended()
        if self.sync and report.cause == "change":
            self.sync.changed.set()
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
        if self.sync:
            self.usage.save()
        if self._saving:
            await asyncio.wait([self._saving], timeout=DISK_S)
        code = 0
        if self.agent.resolution:
            self._remember(tuple(self.agent.resolution.ledger))
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


def unwritable(hierarchies: Hierarchies, owned: Owner) -> str:
    """Why nothing can be written here; empty when it can."""
    if owned.units is not None:
        return ""
    mounts = list(hierarchies.in_use().values())
    if not mounts:
        return "no cgroup hierarchy is mounted"
    closed = [m.path for m in mounts if not (m.writable and os.access(m.path, os.W_OK))]
    return f"{closed[0]} cannot be written by uid {os.geteuid()}" if closed else ""


def _layout(hierarchies: Hierarchies, files: Files, owned: Owner) -> Layout:
    tops = (owned.tree.path_for(tier, "", "").path for tier in ("", APART))
    return Layout(hierarchies, files, *tops, everywhere=owned.units is None)


def _observer(node: NodeFacts, hierarchies: Hierarchies, files: Files, owned: Owner) -> Observer:
    tree = GroupTree(_layout(hierarchies, files, owned), Siblings(hierarchies))
    sensors: list[Sensor] = [NodeSensor(files), CgroupSensor(hierarchies, files, tree.own)]
    return Observer(node, sensors, tree, lambda facts: machine.refresh(facts, hierarchies, files))
