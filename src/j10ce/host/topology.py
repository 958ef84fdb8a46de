"""Which CPUs of this machine share what, as the kernel tells it below /sys.

Inside a container or a virtual machine any of it may be missing: then nothing is shared that nobody can see.
"""

from __future__ import annotations

from typing import Final

from j10ce.host.files import read_whole
from j10ce.model.knob import parse_cpus
from j10ce.model.machine.topology import Cpus, Site, Topology

CPUS: Final = "/sys/devices/system/cpu"
NODES: Final = "/sys/devices/system/node"
# The newer name, and that of kernels before 5.3.
SIBLINGS: Final = ("core_cpus_list", "thread_siblings_list")
THIRD_LEVEL: Final = "3"


def of_this_machine() -> Topology:
    """Of all CPUs that are online here."""
    return topology(_list(f"{CPUS}/online"))


def topology(cpus: Cpus, root: str = "") -> Topology:
    """Of these CPUs, below `root`: empty for this machine. No descriptor is kept: it is read when CPUs come or go."""
    nodes = sorted(_list(f"{root}{NODES}/online"))
    numa = {cpu: node for node in nodes for cpu in _list(f"{root}{NODES}/node{node}/cpulist")}
    memory = {node: size for node in nodes if (size := _memory(f"{root}{NODES}/node{node}/meminfo"))}
    return Topology({cpu: _site(cpu, numa.get(cpu, 0), f"{root}{CPUS}/cpu{cpu}") for cpu in sorted(cpus)}, memory)


def _memory(path: str) -> int:
    """Bytes; its first line is `Node 0 MemTotal:  16263592 kB`."""
    words = _text(path).split(maxsplit=4)
    return int(words[3]) * 1024 if len(words) > 3 and words[2] == "MemTotal:" and words[3].isdecimal() else 0


def _site(cpu: int, numa: int, here: str) -> Site:
    siblings = next((cpus for name in SIBLINGS if (cpus := _list(f"{here}/topology/{name}"))), frozenset())
    package = max(0, _number(f"{here}/topology/physical_package_id"))  # -1: the firmware does not say
    return Site(min(siblings | {cpu}), package, numa, _l3(f"{here}/cache/index3", otherwise=package))


def _l3(cache: str, otherwise: int) -> int:
    """Its id; kernels before 4.10 have none, and its lowest CPU stands in. Without a cache the socket does."""
    level, shared = _text(f"{cache}/level"), _list(f"{cache}/shared_cpu_list")
    if level != THIRD_LEVEL:
        return otherwise
    number = _number(f"{cache}/id")
    return number if number >= 0 else min(shared, default=otherwise)


def _list(path: str) -> Cpus:
    try:
        return parse_cpus(_text(path))
    except ValueError:  # what is no list of CPUs tells nothing
        return frozenset()


def _number(path: str) -> int:
    """-1 where there is none."""
    text = _text(path)
    return int(text) if text.isdecimal() else -1


def _text(path: str) -> str:
    try:
        return (read_whole(path) or b"").decode(errors="replace").strip()
    except OSError:  # a sandbox may hide a file by refusing it, and a topology is no reason to stop
        return ""
