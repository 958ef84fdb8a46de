"""Memory that a workload was promised, handed on to its parts: by what each of them asks for, else equally.

A guarantee holds only where every cgroup on the way down has it, and processes are in the parts. CPU time needs nothing
of the kind: whoever makes the parts weighs them by what they ask for, else equally, and so divides what the whole has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from j10ce.control.law import pages_down
from j10ce.control.memory.protection import Protection
from j10ce.model import knob
from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload


class Share(NamedTuple):
    """Of one part: which fraction of its workload's memory."""

    target: TargetId
    fraction: float

    def of(self, whole: Protection, page: int) -> Protection:
        """Rounded down: together the parts never claim more than the workload has."""
        return Protection(pages_down(whole.min * self.fraction, page), pages_down(whole.low * self.fraction, page))


def part_shares(snap: Snapshot, w: Workload) -> Iterator[Share]:
    """Of those that have a cgroup of their own."""
    every = ((knob.part(w.namespace, w.name, part.name), part.requests.memory) for part in w.parts)
    present = [(target, asked) for target, asked in every if target in snap.groups.by_target]
    total = sum(asked for _, asked in present)
    for target, asked in present:
        yield Share(target, asked / total if total else 1 / len(present))
