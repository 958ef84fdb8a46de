"""Memory that a workload was promised, handed on to its parts: by what each of them asks for, else equally.

A guarantee holds only where every cgroup on the way down has it, and processes are in the parts. CPU time needs nothing
of the kind: whoever makes the parts weighs them by what they ask for, else equally, and so divides what the whole has.
Slowing down begins for each part by its own request and limit, and for the whole by those of all together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from j10ce.control.law import pages_down
from j10ce.control.memory.protection import Protection
from j10ce.model import knob
from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Part, Workload


class Share(NamedTuple):
    """Of one part: which fraction of its workload's memory."""

    target: TargetId
    fraction: float
    part: Part

    def of(self, whole: Protection, page: int) -> Protection:
        """Rounded down: together the parts never claim more than the workload has."""
        return Protection(pages_down(whole.min * self.fraction, page), pages_down(whole.low * self.fraction, page))


def part_shares(snap: Snapshot, w: Workload) -> Iterator[Share]:
    """Of those that have a cgroup of their own."""
    every = ((knob.part(w.namespace, w.name, part.name), part) for part in w.parts)
    present = [(target, part) for target, part in every if target in snap.groups.by_target]
    total = sum(asked(part) for _, part in present)
    for target, part in present:
        yield Share(target, asked(part) / total if total else 1 / len(present), part)


def asked(of: Part | Workload) -> float:
    """Memory that it asks for: of the node's, and of what others leave."""
    return float(of.requests.memory + sum(lent.requests.memory for lent in of.reclaimable.values()))


def allowed(of: Part | Workload) -> float:
    """Memory that it may use at most: a limit on what is lent counts where it has no other."""
    if of.limits.memory != math.inf or not of.reclaimable:
        return of.limits.memory
    return math.fsum(lent.limits.memory for lent in of.reclaimable.values())
