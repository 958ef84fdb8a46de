"""What a workload was promised, handed on to its parts: by what each of them asks for, else equally.

A guarantee holds only where every cgroup on the way down has it; processes are in the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from j10ce.control.law import pages_down
from j10ce.control.protection import Protection
from j10ce.model import knob
from j10ce.model.knob import TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload


class Share(NamedTuple):
    """Of one part: which fraction of its workload's CPU and memory."""

    target: TargetId
    cpu: float
    memory: float

    def of(self, whole: Protection, page: int) -> Protection:
        """Rounded down: together the parts never claim more than the workload has."""
        return Protection(pages_down(whole.min * self.memory, page), pages_down(whole.low * self.memory, page))


def part_shares(snap: Snapshot, w: Workload) -> Iterator[Share]:
    """Of those that have a cgroup of their own."""
    targets = {knob.part(w.namespace, w.name, part.name): part.requests for part in w.parts}
    present = [t for t in targets if t in snap.groups.by_target]
    cpu, memory = (_fractions([targets[t][n] for t in present]) for n in (0, 1))
    return map(Share, present, cpu, memory)


def _fractions(asked: Sequence[int]) -> list[float]:
    total = sum(asked)
    return [n / total if total else 1 / len(asked) for n in asked]
