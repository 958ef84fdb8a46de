"""What a node reports in sum."""

from __future__ import annotations

from msgspec import field

from j10ce.model.bounds import Named, Number, Several, Word
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity


class TierTotal(Strict, frozen=True, kw_only=True):
    """What one tier has on a node, all its workloads together, by resource."""

    workloads: Number = 0
    promised: Named[Quantity] = field(default_factory=dict)
    effective: Named[Quantity] = field(default_factory=dict)
    used: Named[Quantity] = field(default_factory=dict)


class CpuGroup(Strict, frozen=True, kw_only=True):
    """CPUs that share something, as the kernel lists them."""

    id: Number = 0
    cpus: Word = ""  # 0-3,8-11


class TopologyReport(Strict, frozen=True, kw_only=True):
    """Which CPUs of a node share what."""

    threads: Number = 0  # CPUs, as the kernel counts them
    cores: Number = 0
    sibling_step: Number = 0  # how far apart the numbers of a core's siblings are; 0: there are none, or it differs
    sockets: Several[CpuGroup] = ()
    numa_nodes: Several[CpuGroup] = ()
    l3_caches: Several[CpuGroup] = ()
