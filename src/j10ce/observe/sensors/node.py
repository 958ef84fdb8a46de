"""The machine: what it is, and how busy it is."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from j10ce.host import resctrl
from j10ce.host.files import Files, read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.host.topology import topology
from j10ce.model.knob import NODE, parse_cpus
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import Rate, pick
from j10ce.observe.sensors.psi import PRESSURES, total_us

ONLINE: Final = "/sys/devices/system/cpu/online"
ISOLATED: Final = "/sys/devices/system/cpu/isolated"
INIT: Final = "/proc/1/status"
MEMINFO: Final = "/proc/meminfo"
OSRELEASE: Final = "/proc/sys/kernel/osrelease"
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
BOOTED_BY_SYSTEMD: Final = "/run/systemd/system"  # what sd_booted(3) looks for

# Fields of the first line of /proc/stat that count work; idle and iowait (3, 4) are rest, steal (7) is another
# machine's work, guest time (8, 9) is part of user and nice.
BUSY: Final = (0, 1, 2, 5, 6)


def discover(name: str, hierarchies: Hierarchies, files: Files, root: str = "") -> NodeFacts:
    """The facts of the machine whose files are below `root`: empty for this one."""
    bare = NodeFacts(
        name=name,
        cpus=frozenset(),
        memory=0,
        page=os.sysconf("SC_PAGE_SIZE"),
        cgroup=hierarchies.mode,
        systemd=os.path.isdir(root + BOOTED_BY_SYSTEMD),
        kernel=_line(files, root + OSRELEASE),
        boot_id=_line(files, root + BOOT_ID),
        recursive_protection=hierarchies.recursive_protection,
        cache=resctrl.discover(root + resctrl.ROOT, f"{root}/proc"),
    )
    return refresh(bare, hierarchies, files, root)


def refresh(facts: NodeFacts, hierarchies: Hierarchies, files: Files, root: str = "") -> NodeFacts:
    """The same object, unless CPUs or memory came or went."""
    online = parse_cpus(_line(files, root + ONLINE))
    cpus = _usable_cpus(online, hierarchies, files, root) or facts.cpus
    here = facts.topology if online == facts.topology.sites.keys() or not online else topology(online, root)
    quota = _quota(hierarchies, files)
    total = _kibibytes(files.read(root + MEMINFO) or b"", b"MemTotal:") * 1024
    memory = min(total, _memory_limit(hierarchies, files, total)) or facts.memory
    if here is facts.topology and (cpus, quota, memory) == (facts.cpus, facts.cpu_quota, facts.memory):
        return facts
    return replace(facts, cpus=cpus, cpu_quota=quota, memory=memory, topology=here)


def _usable_cpus(online: frozenset[int], hierarchies: Hierarchies, files: Files, root: str) -> frozenset[int]:
    """Online, not isolated at boot, and left to the cgroup at the top: by its container, and by others' partitions."""
    online = online - parse_cpus(_line(files, root + ISOLATED))
    version = hierarchies.version("cpuset")
    if version is None:  # whatever confines this place confines its first process
        return online & parse_cpus(_field(files, root + INIT, b"Cpus_allowed_list:")) or online
    name = "cpuset.effective_cpus" if version == 1 else "cpuset.cpus.effective"
    return online & parse_cpus(_line(files, hierarchies.file("cpuset", "", name))) or online


def _quota(hierarchies: Hierarchies, files: Files) -> float:
    """Millicores that the cgroup at the top may use; the machine's own root has no quota."""
    version = hierarchies.version("cpu")
    if version is None:
        return math.inf
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
    words = [w for name in names for w in _line(files, hierarchies.file("cpu", "", name)).split()]
    return int(words[0]) * 1000 / int(words[1]) if len(words) == 2 and words[0] not in ("max", "-1") else math.inf


def _memory_limit(hierarchies: Hierarchies, files: Files, otherwise: int) -> int:
    """Bytes that the cgroup at the top may hold; the machine's own root has no limit."""
    version = hierarchies.version("memory")
    if version is None:
        return otherwise
    text = _line(files, hierarchies.file("memory", "", "memory.limit_in_bytes" if version == 1 else "memory.max"))
    return int(text) if text and text != "max" else otherwise


class NodeSensor:
    """CPUs in use, memory in use, and pressure of the whole machine, as target `node`.

    Use counts as far as it is use of what `NodeFacts` calls capacity: on the CPUs that a cgroup here may run on, and in
    a container with a quota what is used inside it.
    """

    name = "node"

    def __init__(self, files: Files, hierarchies: Hierarchies, root: str = "") -> None:
        self._files = files
        self._hierarchies = hierarchies
        self._root = root
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._of: object = None  # whose use the rate is
        self._usage = Rate()
        self._stalled = {p: Rate() for p in PRESSURES}

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        yield from self._cpu(now)
        yield from self._memory()
        for pressure, rate in self._stalled.items():
            text = self._files.read(f"{self._root}/proc/pressure/{pressure}")
            stalled = rate.of(now, total_us(text)) if text else None
            if stalled is not None:
                yield Sample(NODE, f"{pressure}.pressure", min(1.0, stalled / 1e6))

    def _cpu(self, now: float) -> Iterable[Sample]:
        limited = _quota(self._hierarchies, self._files) < math.inf
        cpus = None if limited else self._fewer_cpus()
        used, per_s = self._inside() if limited else (self._ticks(cpus), float(self._ticks_per_s))
        if (limited, cpus) != self._of:
            self._of, self._usage = (limited, cpus), Rate()
        if used is not None and (rate := self._usage.of(now, used)) is not None:
            yield Sample(NODE, "cpu.usage", rate / per_s)

    def _fewer_cpus(self) -> frozenset[int] | None:
        """Those that a cgroup here may run on; None: all that are online."""
        online = parse_cpus(_line(self._files, self._root + ONLINE))
        cpus = _usable_cpus(online, self._hierarchies, self._files, self._root)
        return None if cpus == online else cpus

    def _ticks(self, cpus: frozenset[int] | None) -> int | None:
        """Of all CPUs, which is the first line, or of some of them."""
        stat = f"{self._root}/proc/stat"
        if cpus is None:
            text = self._files.read(stat)
            lines = [text[: text.find(b"\n")].split()] if text else []
        else:
            wanted = {b"cpu%d" % cpu for cpu in cpus}
            lines = [f for line in (read_whole(stat) or b"").split(b"\n") if (f := line.split())[:1] and f[0] in wanted]
        return sum(int(fields[n + 1]) for fields in lines for n in BUSY) if lines else None

    def _inside(self) -> tuple[int | None, float]:
        """(what everything below the top used, in parts of a second)."""
        if self._hierarchies.version("cpuacct") == 1:
            text = self._files.read(self._hierarchies.file("cpuacct", "", "cpuacct.usage"))
            return (int(text) if text else None), 1e9
        return pick(self._files.read(self._hierarchies.file("cpu", "", "cpu.stat")) or b"", b"usage_usec "), 1e6

    def _memory(self) -> Iterable[Sample]:
        """Used is what is not free; the working set is what could not be had without swapping or pain."""
        if text := self._files.read(self._root + MEMINFO):
            total = _kibibytes(text, b"MemTotal:")
            yield Sample(NODE, "memory.current", (total - _kibibytes(text, b"MemFree:")) * 1024.0)
            yield Sample(NODE, "memory.working_set", (total - _kibibytes(text, b"MemAvailable:")) * 1024.0)


def _kibibytes(meminfo: bytes, key: bytes) -> int:
    return pick(meminfo, key, b" kB") or 0


def _field(files: Files, path: str, key: bytes) -> str:
    lines = (files.read(path) or b"").split(b"\n")
    return next((line.removeprefix(key).decode().strip() for line in lines if line.startswith(key)), "")


def _line(files: Files, path: str) -> str:
    return (files.read(path) or b"").decode().strip()


_: type[Sensor] = NodeSensor
