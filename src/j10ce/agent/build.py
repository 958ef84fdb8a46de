"""One agent on one host, put together: every part gets what it needs when it is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from j10ce.adapters.adapter import Adapter
from j10ce.adapters.static import StaticAdapter
from j10ce.agent.agent import Host, may_write
from j10ce.agent.cache import Cache, HistoryKeeper
from j10ce.agent.config import KUBE, AgentConfig, gate_notes
from j10ce.agent.controllers import Controllers, plugin_process
from j10ce.agent.dialects import dialect
from j10ce.agent.host_applications import HostApplications
from j10ce.agent.plugins.inline import backends, sensors
from j10ce.agent.report.applied_changes import Trail
from j10ce.agent.report.metrics import Metrics
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring.own_cgroup import OwnCgroup
from j10ce.agent.ring.pressure import Pressure
from j10ce.agent.ring.ring import Agent
from j10ce.agent.ring.runner import Shell
from j10ce.agent.socket.operations import Operations
from j10ce.agent.socket.whereabouts import Whereabouts
from j10ce.agent.sync.enrolment import Enrolment, wanted
from j10ce.agent.sync.node import LocalNode
from j10ce.agent.sync.reporter import ControlPlane
from j10ce.agent.sync.sync import Sync
from j10ce.daemon.clock import SystemClock
from j10ce.errors import Corrupt
from j10ce.host import disks, perf
from j10ce.host.files import Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import Hierarchies
from j10ce.host.net import links
from j10ce.http.client import Peer
from j10ce.kernel import owner
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.owner import TreeOwner
from j10ce.kernel.record.journal import Journal
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import APART
from j10ce.observe.calibrations import Calibrations
from j10ce.observe.closely import Closely
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensor import Sensor
from j10ce.observe.sensors import node as machine
from j10ce.observe.sensors.caches import CacheSensor
from j10ce.observe.sensors.cgroup import CgroupSensor
from j10ce.observe.sensors.connections import tcp
from j10ce.observe.sensors.cpi import CpiSensor
from j10ce.observe.sensors.disk_watch import DiskWatch
from j10ce.observe.sensors.disks import DiskSensor
from j10ce.observe.sensors.node import NodeSensor
from j10ce.observe.sensors.reclaim import ReclaimSensor
from j10ce.observe.sensors.run_queue import RunQueueSensor
from j10ce.observe.sensors.traffic import traffic
from j10ce.observe.siblings import Siblings
from j10ce.policy.document.document import NodeDocument, digest
from j10ce.policy.profiles import builtin

if TYPE_CHECKING:
    from j10ce.agent.sync.kube_node import KubeNode

log = structlog.get_logger()


def build(settings: AgentConfig, load: Callable[[], AgentConfig], *, until_idle: bool) -> Host:
    """Inside a running event loop. `load` reads the configuration again."""
    cache = _cache(settings)
    hierarchies, files = Hierarchies.discover(), Files()
    facts = machine.discover(settings.node_name, hierarchies, files)
    owned = owner.choose(hierarchies, settings.tree, settings.top)
    cannot, layout = unwritable(hierarchies, owned), _layout(hierarchies, files, owned)
    kube = _kube(settings, facts.name, cache, hierarchies)
    own, plugins = OwnCgroup(owned.tree, wanted=kube is None), plugin_process(settings)
    controllers, whereabouts = Controllers(plugins, own.path), Whereabouts(hierarchies, owned)
    observer = _observer(facts, hierarchies, files, layout, settings)
    agent = _agent(settings, cache, owned, observer, controllers, armed=may_write(settings, cache, cannot))
    local, histories = StaticAdapter(whereabouts.surviving(cache.workloads(), facts), whereabouts), HistoryKeeper(cache)
    applications = HostApplications(settings.top, whereabouts, agent.strategy.strategy, local.known())
    shell = _shell(settings, agent, [local, applications, *([kube.adapter] if kube else [])])
    trail, usage = Trail(agent.document), Usage(cache.histories(), histories.keep)
    plane = _plane(settings, facts.name, kube, _local(shell, cache, usage, trail, kube), agent.document)
    return Host(
        settings=settings,
        load=load,
        until_idle=until_idle,
        unwritable=cannot,
        cache=cache,
        owned=owned,
        own=own,
        controllers=controllers,
        plugins=plugins,
        agent=agent,
        shell=shell,
        local=local,
        applications=applications,
        pressure=Pressure(shell, layout),
        operations=Operations(shell, local, whereabouts, cache, settings, cannot, *([plane.server] if plane else [])),
        metrics=Metrics(koordlet=settings.koordlet_metrics),
        trail=trail,
        usage=usage,
        histories=histories,
        kube=kube,
        plane=plane,
        enrolment=_enrolment(settings, facts.name, shell),
    )


def _cache(settings: AgentConfig) -> Cache:
    cache = Cache(Path(settings.run_dir), Path(settings.state_dir))
    cache.warnings += (f"koordlet's gate {note}" for note in gate_notes(settings))
    return cache


def _agent(
    settings: AgentConfig, cache: Cache, owned: TreeOwner, observer: Observer, controllers: Controllers, *, armed: bool
) -> Agent:
    guard = Guard.of_this_process(lambda: float(observer.facts.memory))
    every, journal = (*owned.backends, *backends(settings.disabled)), _journal(settings, cache, observer.facts.boot_id)
    kernel = Kernel(owned.tree, every, journal, guard=guard, estates=owned.estates)
    deciders, holds = controllers.deciders(settings), cache.holds()
    agent = Agent(
        kernel,
        observer,
        deciders.guards,
        _document(cache, observer.facts.name),
        quick=deciders.quick,
        own=deciders.own,
        promised=cache.promises(),
        armed=armed,
        yields=settings.drift == "yield",
    )
    agent.hold(holds.items, holds.released)
    return agent


def _shell(settings: AgentConfig, agent: Agent, adapters: Sequence[Adapter]) -> Shell:
    return Shell(agent, adapters, SystemClock(), settings.period.seconds, dialect(settings.dialects))


def _journal(settings: AgentConfig, cache: Cache, boot_id: str) -> Journal:
    """A damaged journal is reported and kept; what can be read of it still serves to give values back."""
    path = Path(settings.run_dir) / "journal"
    try:
        return Journal.open(path, boot_id)
    except Corrupt as e:
        cache.warnings.append(str(e))
        log.error("journal.damaged", error=str(e))
        return Journal.open(path, boot_id, salvage=True)


def _document(cache: Cache, node: str) -> NodeDocument:
    """The last good one; without any, the built-in profiles."""
    kept = cache.document()
    if kept is not None and kept.node == node:
        return kept
    bare = NodeDocument(node=node, profiles=builtin())
    return replace(bare, hash=digest(bare))


def _kube(settings: AgentConfig, node: str, cache: Cache, hierarchies: Hierarchies) -> KubeNode | None:
    if not settings.server.startswith(KUBE):
        return None
    from j10ce.agent.sync.kube_node import KubeNode  # other hosts need none of it

    return KubeNode(settings, node, cache, hierarchies)


def _plane(
    settings: AgentConfig, name: str, kube: KubeNode | None, node: LocalNode, known: NodeDocument
) -> ControlPlane | None:
    if kube:
        return kube.sync(node, known, node.lend)
    return Sync(_peer(settings), name, node, known) if settings.server else None


def _local(shell: Shell, cache: Cache, usage: Usage, trail: Trail, kube: KubeNode | None) -> LocalNode:
    return LocalNode(shell, cache, usage, trail, kube.adapter.requests if kube else tuple)


def _enrolment(settings: AgentConfig, node: str, shell: Shell) -> Enrolment | None:
    peer, bootstrap = _peer(settings), settings.bootstrap_token_file
    if not settings.server or settings.server.startswith(KUBE) or not wanted(peer, bootstrap):
        return None
    return Enrolment(peer, node, bootstrap, lambda: shell.clock.read().wall)


def _peer(settings: AgentConfig) -> Peer:
    return Peer(settings.server, settings.token_file, settings.ca_file)


def _layout(hierarchies: Hierarchies, files: Files, owned: TreeOwner) -> Layout:
    tops = (owned.tree.path_for(tier, "", "").path for tier in ("", APART))
    return Layout(hierarchies, files, *tops, everywhere=owned.units is None)


def _observer(
    facts: NodeFacts, hierarchies: Hierarchies, files: Files, layout: Layout, settings: AgentConfig
) -> Observer:
    tree, closely, table = GroupTree(layout, Siblings(hierarchies)), Closely(), links.table(ends=True)
    watch = _disks(hierarchies, Calibrations(Path(settings.state_dir)))
    every: list[Sensor] = [
        NodeSensor(files, hierarchies),
        CgroupSensor(hierarchies, files, tree.own, lambda: closely.targets, lambda: closely.asked),
        RunQueueSensor(hierarchies, files, lambda: closely.targets),
        ReclaimSensor(),
        CacheSensor(files),
        *(traffic(table) if table else ()),
        *tcp(hierarchies),
        DiskSensor(hierarchies, files, lambda: observer.facts.disks, lambda: closely.disks),
        *([] if perf.missing() else [CpiSensor(hierarchies, lambda: closely.targets, lambda: facts.cpus)]),
        *sensors(settings.disabled),
    ]

    def refresh(facts: NodeFacts) -> NodeFacts:
        facts = watch.seen(machine.refresh(facts, hierarchies, files))
        present = table.now() if table else facts.links
        return facts if present is facts.links else replace(facts, links=present)

    observer = Observer(facts, every, tree, refresh, closely)  # its facts are those that an operator's word is in
    return observer


def _disks(hierarchies: Hierarchies, calibrations: Calibrations) -> DiskWatch:
    """Write-back is charged to whoever wrote where cgroup v2 has the disks, and nowhere else."""
    charged, clock = hierarchies.version("io") == 2, SystemClock()
    return DiskWatch(
        lambda: calibrations.seen(disks.discover(charged=charged)),
        lambda: clock.read().now,
        changed=calibrations.changed,
    )


def unwritable(hierarchies: Hierarchies, owned: TreeOwner) -> str:
    """Why nothing can be written here; empty when it can."""
    if owned.units is not None:
        return ""
    mounts = list(hierarchies.in_use().values())
    if not mounts:
        return "no cgroup hierarchy is mounted"
    closed = [m.path for m in mounts if not (m.writable and os.access(m.path, os.W_OK))]
    if not closed:
        return ""
    who = os.geteuid()
    return f"not root: uid {who} cannot write {closed[0]}; use sudo" if who else f"{closed[0]} is mounted read-only"
