"""What suffering is, resource by resource, and when a workload suffers.

    bad = min(always, max(least, times · usual))    usual: the lowest tenth of the last half hour
A workload suffers while its mean over ten seconds is at least `bad`. Whom its own limit holds back suffers from nobody.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from j10ce.model.knob import NODE, TargetId
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

RECENT_S: Final = 10.0
FEWEST_RECENT: Final = 3  # samples in that time: only who is looked at closely has so many
USUAL_S: Final = 1800.0
USUAL: Final = 0.1  # quantile
OWN_LIMIT: Final = 0.05  # share of periods in which its quota stopped it
NEARLY: Final = 0.95  # of its memory limit
KNOWN_S: Final = 60.0
LEAST_OF_NODE: Final = 0.002  # of a pressure: one busy CPU of many is still more


class Symptom(NamedTuple):
    """How one kind of suffering is measured, and what its causes use."""

    resource: str  # cpu, memory, io, cache: what is fought for
    metric: str
    use: str  # the series of a suspect
    least: float  # below that nobody suffers
    always: float  # from that on everybody does
    times: float  # what is usual
    least_use: float  # by which a suspect must use more; a share of the capacity where that is known
    words: str  # with the present level and the usual one


# fmt: off
SYMPTOMS: Final = (
    #       resource  metric             use               least  always    times least_use
    Symptom("cpu",    "cpu.pressure",    "cpu.usage",      0.1,   0.3,      2.0,  0.1,
            "waits {:.0%} of the time for a CPU, usually {:.0%}"),
    Symptom("cpu",    "cpu.wait",        "cpu.usage",      0.1,   0.5,      2.0,  0.1,
            "has threads that wait {:.2f} s a second for a CPU, usually {:.2f} s"),
    Symptom("memory", "memory.pressure", "memory.current", 0.05,  0.2,      2.0,  0.02,
            "waits {:.0%} of the time for memory, usually {:.0%}"),
    Symptom("memory", "memory.refaults", "memory.current", 200.0, 5000.0,   4.0,  0.02,
            "reads {:.0f} pages a second again, usually {:.0f}"),
    Symptom("io",     "io.pressure",     "io.usage",       0.1,   0.3,      2.0,  1e6,
            "waits {:.0%} of the time for I/O, usually {:.0%}"),
    Symptom("cache",  "cpu.cpi",         "cpu.usage",      0.0,   math.inf, 1.5,  0.1,
            "needs {:.2f} cycles an instruction, usually {:.2f}"),
)
# fmt: on


class Suffering(NamedTuple):
    target: TargetId
    symptom: Symptom
    level: float
    usual: float
    bad: float

    def __str__(self) -> str:
        return self.symptom.words.format(self.level, self.usual)


def suffering(snap: Snapshot, entitled: Entitlement, symptom: Symptom) -> Suffering | None:
    """What one workload suffers by one symptom; None where it does not, or nobody knows."""
    level = level_of(snap, entitled.target, symptom)
    if level is None or level < symptom.least:
        return None
    usual = snap.readings.window(entitled.target, symptom.metric, USUAL_S).quantile(USUAL) or 0.0
    bad = min(symptom.always, max(symptom.least, symptom.times * usual))
    if level < bad or own_limit(snap, entitled, symptom.resource):
        return None
    return Suffering(entitled.target, symptom, level, usual, bad)


def somewhere(snap: Snapshot, symptom: Symptom) -> bool:
    """Whether anybody on the machine may suffer by it: what is not there at all need not be looked for in workloads."""
    peak = snap.readings.window(NODE, symptom.metric, RECENT_S).peak()
    return peak is None or peak >= LEAST_OF_NODE


def level_of(snap: Snapshot, target: TargetId, symptom: Symptom, span_s: float = RECENT_S) -> float | None:
    """What is measured of it now; None where it is not looked at closely."""
    recent = snap.readings.timed(target, symptom.metric, span_s)
    return math.fsum(value for _, value in recent) / len(recent) if len(recent) >= FEWEST_RECENT else None


def own_limit(snap: Snapshot, entitled: Entitlement, resource: str) -> str:
    """The limit of its own that holds it back; empty where none does."""
    if resource == "cpu":
        throttled = snap.readings.window(entitled.target, "cpu.throttled", KNOWN_S).last() or 0.0
        return f"its own quota stops it in {throttled:.0%} of the periods" if throttled >= OWN_LIMIT else ""
    if resource == "memory" and entitled.ceiling.memory != math.inf:
        held = snap.readings.window(entitled.target, "memory.current", RECENT_S).last() or 0.0
        limit = spell("memory", int(entitled.ceiling.memory))
        return f"its memory limit is {limit}" if held >= NEARLY * entitled.ceiling.memory else ""
    return ""


def capacity(snap: Snapshot, use: str) -> float:
    """Of what is used, in the unit of its series; infinite where nobody knows."""
    known = {"cpu.usage": snap.node.capacity.cpu / 1000, "memory.current": float(snap.node.memory)}
    return known.get(use, math.inf)


def least_effect(snap: Snapshot, symptom: Symptom) -> float:
    whole = capacity(snap, symptom.use)
    return symptom.least_use * (1.0 if whole == math.inf else whole)
