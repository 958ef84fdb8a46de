"""Who owns the cgroup tree of this machine, and through what it is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, Literal, NamedTuple, TypeAlias

from j10ce.errors import Unsupported
from j10ce.host import resctrl
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.host.net import links
from j10ce.kernel.backend import Backend, Estate, Tree
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.cost import CostFiles
from j10ce.kernel.disk.estate import DiskEstate
from j10ce.kernel.disk.files import DiskFiles
from j10ce.kernel.net import probe as net
from j10ce.kernel.net.estate import LinkEstate, ShareEstate
from j10ce.kernel.net.rates import LinkRates
from j10ce.kernel.net.traffic import TrafficClasses
from j10ce.kernel.net.trees import Trees
from j10ce.kernel.node.estate import NodeEstate
from j10ce.kernel.node.features import SchedFeatures
from j10ce.kernel.node.sysctl import Sysctls
from j10ce.kernel.realtime.backend import RealtimeBackend
from j10ce.kernel.realtime.budgets import RealtimeBudgets
from j10ce.kernel.resctrl.estate import ResctrlEstate
from j10ce.kernel.resctrl.files import ResctrlFiles
from j10ce.kernel.resctrl.membership import ResctrlMembership
from j10ce.kernel.resctrl.schemata import Schemata
from j10ce.kernel.systemd.dbus import SYSTEM_BUS, Bus, CallFailed, Connection
from j10ce.kernel.systemd.disks import UnitDisks
from j10ce.kernel.systemd.properties import Nursery, UnitProperties
from j10ce.kernel.systemd.tree import SystemdTree
from j10ce.kernel.systemd.units import Units
from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.kernel.tasks.cookie import Cookies
from j10ce.kernel.tasks.oom import OomScores
from j10ce.kernel.tasks.roll import Roll

BOOTED: Final = "/run/systemd/system"  # there exactly when systemd is the init of this machine
_FEATURE: Final = "a tree owned by systemd"
Beside: TypeAlias = tuple[tuple[Backend, ...], tuple[Estate, ...]]


class TreeOwner(NamedTuple):
    tree: Tree
    backends: tuple[Backend, ...]
    units: Units | None = None  # None: plain directories
    bus: str = ""  # where systemd tells of its reloads
    estates: tuple[Estate, ...] = ()  # who owns targets beside cgroups

    def close(self) -> None:
        if self.units is not None:
            self.units.bus.close()


class Endpoint(NamedTuple):
    """How a manager of systemd is reached."""

    bus: str
    run: str
    user: bool


def choose(
    hierarchies: Hierarchies, kind: Literal["auto", "plain", "systemd"] = "auto", top: str = "j10ce"
) -> TreeOwner:
    """systemd where it owns the tree (for a user: the user's own manager), else plain directories.

    Raises Unsupported when systemd was asked for and is not to be had.
    """
    if kind == "plain":
        return _plain(hierarchies, top)
    try:
        return _systemd(hierarchies, top)
    except Unsupported:
        if kind == "systemd":
            raise
        return _plain(hierarchies, top)


def manager(hierarchies: Hierarchies, uid: int, environ: Mapping[str, str], booted: str = BOOTED) -> Endpoint:
    """The manager that owns the part of the tree that this user may change; Unsupported says what is missing."""
    if not os.path.isdir(booted):
        raise Unsupported(_FEATURE, needs="systemd as the init of this machine")
    if hierarchies.mode != "v2":
        raise Unsupported(_FEATURE, needs=f"cgroup v2 alone; this machine is {hierarchies.mode}")
    if uid == 0:
        return Endpoint(environ.get("DBUS_SYSTEM_BUS_ADDRESS") or SYSTEM_BUS, "/run/systemd", user=False)
    run = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    if not os.path.exists(f"{run}/systemd/private"):
        raise Unsupported(_FEATURE, needs=f"root, or the systemd manager of user {uid} (loginctl enable-linger)")
    return Endpoint(environ.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path={run}/bus", f"{run}/systemd", user=True)


def reach(endpoint: Endpoint, hierarchies: Hierarchies, connect: Callable[[str], Bus] = Connection) -> Units:
    """Its verbs, once it has answered and may write what it owns."""
    units = Units(connect(endpoint.bus), endpoint.run, user=endpoint.user)
    try:
        units.ask_once()
    except CallFailed as e:
        units.bus.close()
        raise Unsupported(_FEATURE, needs=f"an answer from systemd over {endpoint.bus}; {e}") from e
    directory = hierarchies.directory(UNIFIED, units.root)
    if not os.access(directory, os.W_OK):
        raise Unsupported(_FEATURE, needs=f"a delegated cgroup; {directory} is not writable")
    return units


def _systemd(hierarchies: Hierarchies, top: str) -> TreeOwner:
    endpoint = manager(hierarchies, os.geteuid(), os.environ)
    units, nursery = reach(endpoint, hierarchies), Nursery()
    backend = UnitProperties(units, hierarchies, nursery)
    disks = UnitDisks(units, hierarchies, nursery, DiskFiles(IoController(hierarchies)))
    tree = SystemdTree(units, hierarchies, nursery, backend, disks, top)
    beside, estates = _beside(hierarchies, disks)
    return TreeOwner(tree, (backend, *beside), units, endpoint.bus, estates)


def _plain(hierarchies: Hierarchies, top: str) -> TreeOwner:
    beside, estates = _beside(hierarchies, DiskFiles(IoController(hierarchies)))
    return TreeOwner(PlainTree(hierarchies, top), (CgroupFiles(hierarchies), *beside), estates=estates)


def _beside(hierarchies: Hierarchies, disks: Backend) -> Beside:
    """What every machine has, whoever owns its cgroups; `disks`: through what they use disks."""
    caches = ResctrlFiles()
    threads = TaskBackend(Roll(hierarchies), [Cookies(), ResctrlMembership(caches), OomScores()])
    backends = (Sysctls(), SchedFeatures(), Schemata(caches, resctrl.discover()), threads)
    here: Beside = (backends, (NodeEstate(), ResctrlEstate(caches)))
    every = (here, _realtime(hierarchies), _network(hierarchies), _disks(hierarchies, disks))
    return tuple(chain.from_iterable(b for b, _ in every)), tuple(chain.from_iterable(e for _, e in every))


def _realtime(hierarchies: Hierarchies) -> Beside:
    return (RealtimeBackend(hierarchies), RealtimeBudgets(hierarchies)), ()


def _network(hierarchies: Hierarchies) -> Beside:
    """Who spells what is said of links and of traffic on them, and who knows which links are there."""
    if (table := links.table()) is None:
        return (), ()
    trees, able = Trees(table), net.support(hierarchies)
    return (LinkRates(trees, able), TrafficClasses(trees, hierarchies, able)), (LinkEstate(trees), ShareEstate(trees))


def _disks(hierarchies: Hierarchies, files: Backend) -> Beside:
    """Likewise of disks, and of what cgroups may do with them."""
    return (files, CostFiles(IoController(hierarchies))), (DiskEstate(),)
