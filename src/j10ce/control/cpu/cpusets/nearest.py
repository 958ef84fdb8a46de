"""CPUs that belong together: whole cores first, then of one cache, of one memory node, of one socket.

Of several places that are as good the fullest is taken, so that the others stay whole for whoever asks for more; of
those the one with the highest numbers. `spread` takes CPUs of different cores instead, as near to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from j10ce.model.kinds import Bind
from j10ce.model.machine.topology import Cpus, Topology


class Machine:
    """The CPUs that there are, taken or not, and the cores that they make up."""

    def __init__(self, cpus: Cpus, topology: Topology) -> None:
        self.topology = topology
        self._core = {cpu: core for core in topology.cores(cpus).values() for cpu in core}

    def core(self, cpu: int) -> Cpus:
        return self._core.get(cpu, frozenset())

    def whole(self, cpus: Cpus) -> bool:
        """Whether these, of one core, are all of it."""
        return cpus >= self._core[min(cpus)]

    def whole_cores(self, among: Cpus) -> Cpus:
        return frozenset(cpu for cpu in among if self._core[cpu] <= among)


class _Choice(NamedTuple):
    """One way to have the CPUs; the least is the best."""

    split: int  # cores that it has in part; of `spread`: CPUs that share a core
    opened: int  # of those, how many were free as a whole
    level: int  # what all of it shares: 0 a cache, 1 a memory node, 2 a socket, 3 the machine
    room: int  # free CPUs there
    numbers: tuple[int, ...]  # of its CPUs, the highest before all others
    cpus: Cpus


def pick(
    count: int,
    free: Cpus,
    machine: Machine,
    bind: Bind | UnsetType = UNSET,
    had: Cpus = frozenset(),
    spared: Cpus = frozenset(),
) -> Cpus:
    """So many of the free CPUs, as few moved as possible where some were `had`; none where there are not enough.

    `full-cores` takes no part of a core: where whole cores do not make up the number, it is none. `spared` are free,
    and not for this one.
    """
    if bind == "full-cores":
        free = machine.whole_cores(free)
        had = machine.whole_cores(had & free)
    kept = had & free
    if len(kept) > count:
        free, kept = kept, frozenset()
    choices = []
    for level, place in _places(free, kept, machine.topology):
        cores = _cores(place - kept - spared, machine)
        cpus = _spread(count, cores, kept, machine) if bind == "spread" else _packed(count, cores, kept, machine)
        if len(cpus) == count and (bind != "full-cores" or machine.whole_cores(cpus) == cpus):
            split, opened = _split(cpus, free, machine, spread=bind == "spread")
            choices.append(_Choice(split, opened, level, len(place), tuple(sorted(-n for n in cpus)), cpus))
    return min(choices).cpus if choices else frozenset()


def _places(free: Cpus, kept: Cpus, topology: Topology) -> Iterator[tuple[int, Cpus]]:
    """Where to look, with what all of it shares; whoever keeps CPUs looks around those."""
    for level, groups in enumerate((topology.by_l3(free), topology.by_numa(free), topology.by_package(free))):
        if kept:
            yield level, frozenset[int]().union(*(group for group in groups.values() if group & kept))
        else:
            yield from ((level, group) for group in groups.values())
    yield 3, free


def _cores(place: Cpus, machine: Machine) -> list[Cpus]:
    """The free parts of cores, those of the emptiest cache first, so that few caches are used; then the highest."""
    room = {cpu: len(cpus) for cpus in machine.topology.by_l3(place).values() for cpu in cpus}
    cores = machine.topology.cores(place).values()
    return sorted(cores, key=lambda core: (-room[min(core)], -machine.topology.site(min(core)).l3, -min(core)))


def _packed(count: int, cores: list[Cpus], kept: Cpus, machine: Machine) -> Cpus:
    """Whole cores as long as they fit, what completes a core that is had in part first; then what others left."""
    taken = kept
    full = [core for core in cores if machine.whole(core | (kept & machine.core(min(core))))]
    for core in sorted(full, key=lambda core: not kept & machine.core(min(core))):
        if len(core) <= count - len(taken):
            taken |= core
    left = [core for core in cores if not core & taken]
    while left and len(taken) < count:
        rest = count - len(taken)
        core = min(left, key=lambda c: (machine.whole(c), len(c) < rest, len(c) if len(c) >= rest else -len(c)))
        left.remove(core)
        taken |= frozenset(sorted(core, reverse=True)[:rest])
    return taken


def _spread(count: int, cores: list[Cpus], kept: Cpus, machine: Machine) -> Cpus:
    """One CPU of each core, then a second one; cores of which nobody has any before those of others."""
    used = {cpu: len(kept & machine.core(cpu)) for core in cores for cpu in core}
    rows = [
        (used[cpu] + nth, not machine.whole(core), at, -cpu)
        for at, core in enumerate(cores)
        for nth, cpu in enumerate(sorted(core, reverse=True))
    ]
    return kept | {-row[3] for row in sorted(rows)[: max(0, count - len(kept))]}


def _split(cpus: Cpus, free: Cpus, machine: Machine, *, spread: bool) -> tuple[int, int]:
    cores = machine.topology.cores(cpus).values()
    if spread:
        return sum(len(core) - 1 for core in cores), 0
    parts = [core for core in cores if not machine.whole(core)]
    return len(parts), sum(machine.core(min(core)) <= free for core in parts)
