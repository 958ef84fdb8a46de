"""Which CPUs share a core, a last-level cache, a memory node and a socket."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from j10ce.model.knob import NR_CPUS, format_cpus, parse_cpus
from j10ce.model.parts.totals import CpuGroup, TopologyReport

Cpus: TypeAlias = frozenset[int]
ADJACENT: Final = 1  # how siblings are numbered where nobody said: 0 and 1 share a core


class Site(NamedTuple):
    """Where one CPU is. Cores are called by their lowest CPU, as the kernel's own numbers repeat on every socket."""

    core: int
    package: int = 0
    numa: int = 0
    l3: int = 0  # as `cache/index3/id` and resctrl call it


class Topology(Struct, frozen=True):
    """The sites of CPUs. One of which nothing is known has a core of its own, in socket, memory node and cache 0:
    a container or a virtual machine may hide what it runs on."""

    sites: Mapping[int, Site] = field(default_factory=dict)
    memory: Mapping[int, int] = field(default_factory=dict)  # memory node to bytes, as far as the kernel says it

    @property
    def cpus(self) -> Cpus:
        return frozenset(self.sites)

    def site(self, cpu: int) -> Site:
        return self.sites.get(cpu) or Site(cpu)

    def siblings(self, cpu: int) -> Cpus:
        """All CPUs of its core, itself included."""
        core = self.site(cpu).core
        return frozenset(n for n, site in self.sites.items() if site.core == core) | {cpu}

    def cores(self, among: Iterable[int]) -> dict[int, Cpus]:
        """Core to those of its CPUs that are `among` some, in the order of cores."""
        return self._by(among, lambda site: site.core)

    def by_l3(self, among: Iterable[int]) -> dict[int, Cpus]:
        return self._by(among, lambda site: site.l3)

    def by_numa(self, among: Iterable[int]) -> dict[int, Cpus]:
        return self._by(among, lambda site: site.numa)

    def by_package(self, among: Iterable[int]) -> dict[int, Cpus]:
        return self._by(among, lambda site: site.package)

    def _by(self, among: Iterable[int], of: Callable[[Site], int]) -> dict[int, Cpus]:
        groups: dict[int, set[int]] = {}
        for cpu in among:
            groups.setdefault(of(self.site(cpu)), set()).add(cpu)
        return {name: frozenset(groups[name]) for name in sorted(groups)}


def report(topology: Topology) -> TopologyReport:
    """In short: lists of CPUs, and one number for how the siblings of all cores are numbered."""
    every, cores = topology.cpus, topology.cores(topology.cpus)
    return TopologyReport(
        threads=len(every),
        cores=len(cores),
        sibling_step=_step(cores.values()),
        sockets=_groups(topology.by_package(every)),
        numa_nodes=_groups(topology.by_numa(every)),
        l3_caches=_groups(topology.by_l3(every)),
    )


def _groups(groups: Mapping[int, Cpus]) -> tuple[CpuGroup, ...]:
    return tuple(CpuGroup(id=name, cpus=format_cpus(cpus)) for name, cpus in groups.items())


def _step(cores: Collection[Cpus]) -> int:
    """The distance between siblings; 0: there are none, or it differs from core to core."""
    steps = {b - a for core in cores for a, b in zip(sorted(core), sorted(core)[1:], strict=False)}
    alike = len({len(core) for core in cores}) == 1
    return steps.pop() if len(steps) == 1 and alike else 0


def from_report(report: TopologyReport, cpus: Cpus) -> Topology:
    """Of a machine with these CPUs; raises ValueError where a list of CPUs is none, or names more than there can be.

    What the report leaves open is taken as the commonest machine has it.
    """
    package, numa, l3 = (_named(groups) for groups in (report.sockets, report.numa_nodes, report.l3_caches))
    core = _cores(cpus, report)
    return Topology(
        {n: Site(core[n], package.get(n, 0), numa.get(n, 0), l3.get(n, package.get(n, 0))) for n in sorted(cpus)}
    )


def _named(groups: Iterable[CpuGroup]) -> dict[int, int]:
    named: dict[int, int] = {}
    total = 0
    for group in groups:
        cpus = parse_cpus(group.cpus)
        if (total := total + len(cpus)) > NR_CPUS:
            raise ValueError(f"more than {NR_CPUS} CPUs, counted as often as they are named")
        named |= dict.fromkeys(cpus, group.id)
    return named


def _cores(cpus: Cpus, report: TopologyReport) -> dict[int, int]:
    threads = max(1, round(report.threads / report.cores)) if report.cores > 0 else 1
    step, core = report.sibling_step or ADJACENT, dict[int, int]()
    for cpu in sorted(cpus):
        if cpu not in core:
            core |= {n: cpu for n in range(cpu, cpu + threads * step, step) if n in cpus and n not in core}
    return core


def in_words(report: TopologyReport) -> str:
    """`1 socket, 8 cores, 16 threads, 1 NUMA node, 2 L3 caches: 0-3,8-11 and 4-7,12-15`."""
    counts = [
        (len(report.sockets), "socket"),
        (report.cores, "core"),
        (report.threads, "thread"),
        (len(report.numa_nodes), "NUMA node"),
        (len(report.l3_caches), "L3 cache"),
    ]
    words = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)
    several = report.l3_caches if len(report.l3_caches) > 1 else ()
    return words + (": " + " and ".join(group.cpus for group in several) if several else "")
