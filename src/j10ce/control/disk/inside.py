"""Caps of a pod on cgroup v1, where a cap binds processes of the cgroup itself: each container has a part of them.

The parts are what the cap is together. Who asks for more has more, so that an idle container beside a busy one costs it
little; nobody has less than half an even part, so that who is idle may begin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from j10ce.control.disk.follow import divide
from j10ce.control.law import step_up
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Snapshot

KNOWN_S: Final = 15.0
STEPS: Final = 1  # per doubling: what containers ask for changes their parts rarely
LEAST: Final = 1.0
ASKED: Final = {
    "io.max.rbps": "disk.read",
    "io.max.wbps": "disk.write",
    "io.max.riops": "disk.riops",
    "io.max.wiops": "disk.wiops",
}


def passed_in(snap: Snapshot, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """The proposals, and those of the containers that follow from them."""
    for p in proposals:
        yield p
        knob = p.setting.knob
        if knob in ASKED and isinstance(p.value, float) and p.value < math.inf and _stays_outside(snap, knob):
            yield from _parts(snap, p, p.value)


def _parts(snap: Snapshot, p: Proposal, whole: float) -> Iterator[Proposal]:
    s = p.setting
    targets = _inside(snap, s.target)
    asks = {t: step_up(max(LEAST, _asked(snap, s, t)), STEPS) for t in targets}
    for target, part in divide(asks, whole).items():
        why = f"{part / whole:.0%} of its pod's, which cgroup v1 does not pass on: {p.reason}"
        yield p._replace(setting=s._replace(target=target), value=float(math.floor(part)), reason=why)


def _inside(snap: Snapshot, target: TargetId) -> list[TargetId]:
    workload = snap.workloads.get(target)
    return [t for t in workload.part_targets if t in snap.groups.by_target] if workload else []


def _asked(snap: Snapshot, s: Setting, target: TargetId) -> float:
    return snap.readings.window(target, f"{ASKED[s.knob]}[{s.instance}]", KNOWN_S).last() or 0.0


def _stays_outside(snap: Snapshot, knob: str) -> bool:
    support = snap.support.get(knob)
    return support is not None and support.via == "cgroup1"
