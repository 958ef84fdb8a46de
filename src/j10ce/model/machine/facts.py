"""All that is known of the machine itself."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field

from j10ce.model.machine.cache import CacheControl
from j10ce.model.machine.disk import Disk
from j10ce.model.machine.link import Link
from j10ce.model.machine.topology import Topology
from j10ce.model.quantity import BitsPerSecond, Bytes, Millicores
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
    links: Mapping[str, Link] = field(default_factory=dict)  # by name
    disks: Mapping[str, Disk] = field(default_factory=dict)  # by number

    @property
    def capacity(self) -> Resources:
        """Of links and disks the least among those that are managed: a floor holds whichever one is used."""
        cpu = int(min(len(self.cpus) * 1000, self.cpu_quota))
        links = [min(k.capacity, k.ingress_capacity) for k in self.links.values() if k.managed]
        disks = [d for d in self.disks.values() if d.managed and d.calibrated]
        return Resources(
            Millicores(cpu),
            Bytes(self.memory),
            BitsPerSecond(int(min((c for c in links if c < math.inf), default=0))),
            min((d.read_bps for d in disks), default=0),
            min((d.write_bps for d in disks), default=0),
        )
