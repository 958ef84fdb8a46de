"""Tries a cap on an antagonist, keeps what helps and undoes what does not.

    rungs     of CPU time: 75, 50, 25 % of what it used when it was named; of memory: it may not grow any more
    trial     each rung has 20 s; it helps where the victim's suffering is a quarter less, or over
    kept      five minutes, twice as long each time that it is needed again, an hour at most; then it ends
    given up  where no rung helps: all is undone, and for ten minutes, then twice as long, nothing is tried again
Never below the antagonist's floor. One trial at a time, so that what helps is known.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from j10ce.control.law import pages_up
from j10ce.model.knob import PERIOD_US, TargetId
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

RUNGS: Final = {"cpu": (0.75, 0.5, 0.25), "cache": (0.75, 0.5, 0.25), "memory": (1.0,)}
KNOBS_BY_RESOURCE: Final = {"cpu": "cpu.max", "cache": "cpu.max", "memory": "memory.high"}
TRIAL_S: Final = 20.0
LESS: Final = 0.75  # of the suffering at the beginning
KEEP_S: Final = 300.0
BACK_OFF_S: Final = 600.0
LONGEST_S: Final = 3600.0
LEAST_CPUS: Final = 0.1
STEPS: Final = 64  # of the node's memory: a cap is rounded up to one, since whoever is capped still grows meanwhile

Stage = Literal["trying", "kept", "given up", "ended"]


class Trial(NamedTuple):
    """What is done about one antagonist for the sake of one victim."""

    victim: TargetId
    suspect: TargetId
    resource: str
    suffered: float  # by the victim, at the beginning
    used: float  # by the antagonist, then: CPUs, bytes
    stage: Stage
    rung: int
    until: float  # the end of the trial, of what is kept, of the back-off
    times: int = 1  # in a row: how often it was kept, or given up

    @property
    def caps(self) -> bool:
        return self.stage in ("trying", "kept")


def begin(victim: TargetId, suspect: TargetId, resource: str, suffered: float, used: float, now: float) -> Trial:
    return Trial(victim, suspect, resource, suffered, used, "trying", 0, now + TRIAL_S)


def again(before: Trial, suffered: float, used: float, now: float) -> Trial:
    """With the rung that helped last time; from the mildest one on where none did."""
    rung = before.rung if before.stage == "ended" else 0
    return before._replace(suffered=suffered, used=used, stage="trying", rung=rung, until=now + TRIAL_S)


def proceed(trial: Trial, now: float, level: float | None, bad: float) -> Trial:
    """One look later; `level` is what the victim suffers now, None where nobody knows: then it does not."""
    if now < trial.until:
        return trial
    if trial.stage == "kept":
        return trial._replace(stage="ended", times=trial.times + 1)
    if trial.stage != "trying":
        return trial
    if level is None or level < bad or level <= LESS * trial.suffered:
        return trial._replace(stage="kept", until=now + min(LONGEST_S, KEEP_S * 2 ** (trial.times - 1)))
    if trial.rung + 1 < len(RUNGS[trial.resource]):
        return trial._replace(rung=trial.rung + 1, until=now + TRIAL_S)
    wait = min(LONGEST_S, BACK_OFF_S * 2 ** (trial.times - 1))
    return trial._replace(stage="given up", until=now + wait, times=trial.times + 1)


def may_begin(before: Trial | None, now: float) -> bool:
    """Nothing was tried yet, or what was is over."""
    return before is None or (not before.caps and (before.stage == "ended" or now >= before.until))


def cap(trial: Trial, entitled: Entitlement, snap: Snapshot) -> float:
    """The value of the knob: microseconds per period, or bytes."""
    amount = trial.used * RUNGS[trial.resource][trial.rung]
    if trial.resource == "memory":
        return pages_up(max(amount, float(entitled.floor.memory)), max(snap.node.page, snap.node.memory // STEPS))
    return float(round(max(amount, entitled.floor.cpu / 1000, LEAST_CPUS) * PERIOD_US))


def spelt(trial: Trial, value: float) -> str:
    knob = KNOBS_BY_RESOURCE[trial.resource]
    amount = spell("memory", int(value)) if trial.resource == "memory" else f"{value / PERIOD_US:.2f} CPUs"
    return f"{knob} {amount}"
