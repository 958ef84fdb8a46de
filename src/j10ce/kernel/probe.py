"""What this machine can enforce. With privileges each knob is tried on a scratch cgroup, which is removed again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from j10ce.host import perf, resctrl
from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.kernel.disk.controller import IoController
from j10ce.kernel.disk.cost import CostFiles
from j10ce.kernel.disk.files import DiskFiles
from j10ce.kernel.net import probe as net
from j10ce.kernel.node.features import SchedFeatures
from j10ce.kernel.node.sysctl import Sysctls
from j10ce.kernel.realtime import nets
from j10ce.kernel.resctrl.files import ResctrlFiles
from j10ce.kernel.resctrl.membership import ResctrlMembership
from j10ce.kernel.resctrl.schemata import Schemata
from j10ce.kernel.tasks.cookie import Cookies
from j10ce.kernel.tasks.handout import OUTSIDE
from j10ce.kernel.tasks.roll import Roll
from j10ce.model.kinds import Capability
from j10ce.model.knob import CGROUP_KNOBS, FREEZER, KNOBS, OF_VENDORS, Setting, Support, TargetId, Value, group
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

# What is tried, in this order: a burst needs a quota, and an idle group takes no weight.
_TRIALS: Final[Mapping[str, Value]] = {
    "cpu.weight": 512.0,
    "cpu.max": 50_000.0,
    "cpu.max.burst": 10_000.0,
    "cpu.idle": 1.0,
    "cpu.bvt_warp_ns": -1.0,
    "memory.min": float(1 << 20),
    "memory.low": float(1 << 20),
    "memory.high": float(1 << 30),
    "memory.max": float(1 << 30),
    "memory.oom.group": 1.0,
    "memory.wmark_ratio": 95.0,
    "memory.wmark_scale_factor": 20.0,
    "memory.wmark_min_adj": -25.0,
    "memory.priority": 1.0,
    "memory.use_priority_oom": 1.0,
    "memory.pagecache_limit.size": float(1 << 30),
    "memory.pagecache_limit.sync": 0.0,
    "memory.pagecache_limit.enable": 1.0,
    "cgroup.freeze": 1.0,
}
_TRIGGERS: Final = (("windows of any length", 1_000_000), ("windows of n × 2 s", 2_000_000))
_PTRACE: Final = 1 << 19  # the bit of CAP_SYS_PTRACE
_SCRATCH: Final = "j10ce-probe-"  # and the process that probes
_V2_ROOT: Final = "cgroup v2 mounted at /sys/fs/cgroup"


def examine(hierarchies: Hierarchies | None = None, *, proc: str = "/proc", run: str = "/run") -> list[Capability]:
    """The doctor's findings, most basic first. Changes nothing that outlasts the call."""
    mounted = hierarchies or Hierarchies.discover()
    return [
        _cgroup(mounted),
        _privileges(mounted),
        *_knobs({**try_knobs(mounted), **_beside_cgroups(mounted), "sched.realtime": nets.support(mounted)}),
        *(_capability(deed.value, s) for deed, s in CgroupFiles(mounted).deeds().items()),
        _tasks(mounted, proc),
        *_network(mounted),
        *_pressure(mounted, proc),
        _cpi(),
        _recursive_protection(mounted),
        _swap(proc),
        _systemd(run),
    ]


def try_knobs(hierarchies: Hierarchies) -> dict[str, Support]:
    """Every knob: written to a scratch cgroup and read back where that is allowed, else judged by what is there."""
    backend = CgroupFiles(hierarchies)
    judged = dict(backend.knobs())
    top = f"{_SCRATCH}{os.getpid()}"
    tree, target = PlainTree(hierarchies, top), group(top)
    _clear(hierarchies)
    if not hierarchies.in_use() or isinstance(tree.make(target, Handle(top)), Refused):
        tree.remove(target)
        return judged
    try:
        return {name: _try(backend, target, name, support) for name, support in judged.items()}
    finally:
        tree.remove(target)


def _beside_cgroups(hierarchies: Hierarchies) -> dict[str, Support]:
    """The machine, caches, cores and disks. Nothing is tried: the kernel says what it has."""
    files = ResctrlFiles()
    traits = {t.knob: t.support() for t in (ResctrlMembership(files), Cookies())}
    io = IoController(hierarchies)
    backends = (Sysctls(), SchedFeatures(), Schemata(files, resctrl.discover()), DiskFiles(io), CostFiles(io))
    return {**dict(chain.from_iterable(b.knobs().items() for b in backends)), **traits}


def _tasks(hierarchies: Hierarchies, proc: str) -> Capability:
    """Whether what every thread has by itself can be given: it must be seen, and be ours to look into."""
    status = file.read(f"{proc}/self/status") or ""
    rights = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    unseen = OUTSIDE in (Roll(hierarchies).tasks(Handle(""), processes=True) or ()) if hierarchies.in_use() else True
    wanting = {"the PID namespace of the host (hostPID)": unseen, "CAP_SYS_PTRACE": not int(rights, 16) & _PTRACE}
    needs = " and ".join(need for need, lacks in wanting.items() if lacks)
    instead = "threads that cannot be reached keep their cache group and cookie" if needs else ""
    return Capability(feature="tasks", ok=not needs, via="prctl, resctrl", needs=needs, instead=instead)


def _network(hierarchies: Hierarchies) -> Iterator[Capability]:
    """Whether traffic can be divided: tried where nobody else is."""
    able = net.support(hierarchies)
    instead_of = {"egress": "what is sent is not divided", "ingress": "what is received is not divided"}
    for way, (ok, _, needs, _) in able.items():
        instead = instead_of[way]
        via = "HTB, by the cgroup of each socket" if ok else ""
        yield Capability(feature=f"net.{way}", ok=ok, via=via, needs=needs, instead="" if ok else instead)


def _clear(hierarchies: Hierarchies) -> None:
    """Whoever was killed here left its scratch cgroup behind; nobody else knows of it."""
    names = {name for mount in hierarchies.in_use().values() for name in os.listdir(mount.path)}
    for name in (n for n in names if n.startswith(_SCRATCH) and not os.path.exists(f"/proc/{n[len(_SCRATCH) :]}")):
        PlainTree(hierarchies, name).remove(group(name))


def _try(backend: CgroupFiles, target: TargetId, knob: str, judged: Support) -> Support:
    setting, at = Setting(target, knob), Handle(target.removeprefix("group/"))
    if not judged.ok or backend.read(setting, at) is None:
        return judged  # absent, or its controller is not enabled for top-level cgroups
    match backend.write(setting, _TRIALS.get(knob, frozenset()), at):
        case Refused(reason):
            return judged._replace(ok=False, needs=f"a kernel that takes it: {reason}")
        case Applied() | Gone():
            return judged


def _knobs(tried: Mapping[str, Support]) -> Iterator[Capability]:
    """One by one; what mainline kernels lack is one finding, unless this kernel has some of it."""
    rare = {name: s for name, s in tried.items() if KNOBS[name].rare and not s.ok}
    yield from (_capability(name, s) for name, s in tried.items() if name not in rare)
    if rare:
        instead = "cpu.idle and weights; the agent reclaims above marks and limits; oomPriority says who goes first"
        needs = f"{OF_VENDORS}, for {', '.join(rare)}"
        yield Capability(feature="knobs of vendors", ok=False, needs=needs, instead=instead)


def _capability(feature: str, support: Support) -> Capability:
    ok, via, needs, instead = support
    return Capability(feature=feature, ok=ok, via=via, needs=needs, instead="" if ok else instead)


def _cgroup(hierarchies: Hierarchies) -> Capability:
    missing = sorted({k.controller for k in CGROUP_KNOBS.values()} - {*hierarchies.available(), FREEZER})
    needs = f"the controllers {', '.join(missing)}, mounted as cgroup v2 or v1" if missing else ""
    return Capability(
        feature="cgroup", ok=not missing, via=f"{hierarchies.mode}, kernel {os.uname().release}", needs=needs
    )


def _privileges(hierarchies: Hierarchies) -> Capability:
    mounts = hierarchies.in_use().values()
    if read_only := [m.path for m in mounts if not m.writable]:
        needs = f"{read_only[0]} mounted read-write"
    else:
        needs = "root, or the cgroup tree of a user's systemd manager"
    ok = bool(mounts) and all(os.access(m.path, os.W_OK) for m in mounts)
    instead = "" if ok else "plans and explains, writes nothing"
    return Capability(
        feature="privileges", ok=ok, via=f"uid {os.geteuid()}", needs="" if ok else needs, instead=instead
    )


def _pressure(hierarchies: Hierarchies, proc: str) -> Iterator[Capability]:
    present = os.path.exists(f"{proc}/pressure/cpu")
    needs = "" if present else "a kernel with CONFIG_PSI, booted with psi=1"
    instead = "" if present else "usage alone tells of contention"
    yield Capability(feature="psi", ok=present, via=f"{proc}/pressure", needs=needs, instead=instead)
    grouped = present and hierarchies.unified is not None
    needs, instead = ("", "") if grouped else (_V2_ROOT, "pressure of the whole machine")
    yield Capability(feature="psi.cgroup", ok=grouped, via="cgroup2" if grouped else "", needs=needs, instead=instead)
    window = next((name for name, us in _TRIGGERS if _takes_trigger(f"{proc}/pressure/cpu", us)), "")
    needs = "" if window else "write access to the pressure files (root)"
    if window == _TRIGGERS[1][0]:
        needs = "CAP_SYS_RESOURCE for windows shorter than 2 s"
    instead = "" if window else "pressure is seen at the next tick"
    yield Capability(feature="psi.triggers", ok=bool(window), via=window, needs=needs, instead=instead)


def _cpi() -> Capability:
    needs = perf.missing()
    instead = "what waiting shows; what shared caches and memory buses cost is not seen" if needs else ""
    via = "" if needs else "perf_event_open"
    return Capability(feature=perf.FEATURE, ok=not needs, via=via, needs=needs, instead=instead)


def _takes_trigger(path: str, window_us: int) -> bool:
    """The trigger lives as long as the descriptor, so this one never fires."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, b"some %d %d\0" % (window_us // 2, window_us))
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _recursive_protection(hierarchies: Hierarchies) -> Capability:
    ok = hierarchies.recursive_protection
    needs = "" if ok else "cgroup2 mounted with memory_recursiveprot (kernel ≥ 5.7)"
    instead = "" if ok else "memory floors are written on every level"
    return Capability(feature="memory_recursiveprot", ok=ok, via="mount option", needs=needs, instead=instead)


def _swap(proc: str) -> Capability:
    lines = (file.read(f"{proc}/swaps") or "").split("\n")[1:]
    total = sum(int(line.split()[2]) for line in lines) >> 10
    if not lines:
        instead = "anonymous memory cannot be reclaimed, only file pages"
        return Capability(feature="swap", ok=False, needs="a swap device or file", instead=instead)
    return Capability(feature="swap", ok=True, via=f"{total} MiB")


def _systemd(run: str) -> Capability:
    if os.path.isdir(f"{run}/systemd/system"):
        return Capability(feature="systemd", ok=True, via="the system manager")
    return Capability(feature="systemd", ok=False, needs="systemd as the first process", instead="plain directories")
