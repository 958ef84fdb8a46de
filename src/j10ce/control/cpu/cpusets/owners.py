"""CPU sets that others chose: those of groups that are not ours, and those that adopted workloads and parts came with.

Nothing of ours widens them. So whoever has one is confined to it, whatever we do on other CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from j10ce.model import knob
from j10ce.model.knob import Setting, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload

Cpus = frozenset[int]


class Stay(NamedTuple):
    """Where a workload can run at all, and what it is promised there; the same of those parts that have fewer CPUs."""

    cpus: Cpus
    amount: int  # millicores
    parts: tuple[tuple[Cpus, int], ...] = ()

    def inside(self, cpus: Cpus) -> int:
        """Of its promise, what is due on these CPUs alone."""
        return self.amount if self.cpus <= cpus else sum(amount for fewer, amount in self.parts if fewer <= cpus)


class Confined(NamedTuple):
    """CPUs that someone cannot leave, and how many of them all who are confined there need."""

    cpus: Cpus
    least: int


def chosen_by_others(snap: Snapshot, target: TargetId) -> Cpus:
    """The set that its owner gave it, before us; empty: none, or it is ours to set."""
    group = snap.groups.get(target)
    if group is None or group.owned:
        return frozenset()
    s = Setting(target, "cpuset.cpus")
    value = snap.originals.get(s, snap.settings.get(s))
    return value & snap.node.cpus if isinstance(value, frozenset) else frozenset()


def above(snap: Snapshot, target: TargetId) -> Cpus:
    """The CPUs that the groups above leave it, as far as those groups are not ours."""
    cpus = snap.node.cpus
    for up in snap.groups.ancestors(target):
        cpus = cpus & chosen_by_others(snap, up) or cpus
    return cpus


def within(snap: Snapshot, target: TargetId) -> Cpus:
    """The CPUs that it can use at all."""
    outer = above(snap, target)
    return outer & chosen_by_others(snap, target) or outer


def static(snap: Snapshot, w: Workload) -> Cpus:
    """The CPUs that a kubelet's static policy gave containers: as many whole ones as they ask for.

    It writes them again whenever they differ. So such a workload is left alone, and nobody is given its CPUs.
    """
    given = ((p.requests.cpu, chosen_by_others(snap, knob.part(w.namespace, w.name, p.name))) for p in w.parts)
    return frozenset[int]().union(*(cpus for asked, cpus in given if cpus and len(cpus) * 1000 == asked))


def stay(snap: Snapshot, w: Workload) -> Stay:
    """A container with a set of its own has what it asks for there: so it is with the kubelet's static CPUs."""
    here, e = within(snap, w.target), snap.entitlements.get(w.target)
    parts = ((knob.part(w.namespace, w.name, p.name), p.requests.cpu) for p in w.parts)
    fewer = ((within(snap, target), asked) for target, asked in parts if target in snap.groups.by_target)
    return Stay(here, e.floor.cpu if e else 0, tuple((cpus, asked) for cpus, asked in fewer if cpus != here))


def confined(stays: Collection[Stay], everywhere: Cpus) -> list[Confined]:
    """Every part of the CPUs that someone is confined to."""
    sets = {cpus for s in stays for cpus in (s.cpus, *(fewer for fewer, _ in s.parts))} - {everywhere}
    return [Confined(cpus, _least(cpus, sum(s.inside(cpus) for s in stays))) for cpus in sets]


def _least(cpus: Cpus, promised: int) -> int:
    return min(len(cpus), max(1, math.ceil(promised / 1000)))
