"""All that is known of the machine itself."""

from __future__ import annotations

import math

from msgspec import Struct

from j10ce.model.machine.cache import CacheControl
from j10ce.model.machine.topology import Topology
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources


class NodeFacts(Struct, frozen=True):
    """What the machine is."""

    name: str
    cpus: frozenset[int]  # those that a cgroup at the top may run on
    memory: int  # bytes
    page: int = 4096
    cgroup: str = "v2"  # v1, v2 or hybrid
    systemd: bool = False
    kernel: str = ""
    boot_id: str = ""
    recursive_protection: bool = False  # cgroup2 mounted with memory_recursiveprot
    cpu_quota: float = math.inf  # millicores that everything here may use together, as inside a container
    topology: Topology = Topology()  # of all CPUs that are online, as far as it can be seen
    cache: CacheControl = CacheControl()  # what can be divided of caches and memory bandwidth

    @property
    def capacity(self) -> Resources:
        cpu = int(min(len(self.cpus) * 1000, self.cpu_quota))
        return Resources(cpu=Millicores(cpu), memory=Bytes(self.memory))
