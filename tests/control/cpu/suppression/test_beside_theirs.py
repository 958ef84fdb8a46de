"""Suppression beside Koordinator's own law, on one machine on paper: fewer changes, as much work, nobody worse off."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import pytest

from j10ce.control.cpu.suppression.suppress import CpuSuppress
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import PERIOD_US, TargetId
from j10ce.model.parts.strategy import Strategy
from j10ce.testing import build
from tests.control.cpu.world import Demand, Second, World
from tests.koordinator.theirs.laws.suppress import Suppression, Use, allowed_milli, stepped_quota
from tests.koordinator.theirs.laws.suppress_cpus import CpuPlace, Pinned, suppressed_cpus

CPUS, SECONDS, THRESHOLD = 40, 600, 65
JOB = TargetId("workload/default/job")


def step(n: int) -> float:
    return 24.0 if n // 60 % 2 else 2.0


def noisy(n: int) -> float:
    return 12.0 + random.Random(n).uniform(-2.5, 2.5)


def diurnal(n: int) -> float:
    return 13.0 + 10.0 * math.sin(2 * math.pi * n / SECONDS) + random.Random(n).uniform(-0.5, 0.5)


class Score(NamedTuple):
    changes: int
    missed: float  # CPU seconds
    work: float  # CPU seconds of best effort


def theirs(mode: str, wanted: Demand) -> Score:
    places = [CpuPlace(n, n % (CPUS // 2)) for n in range(CPUS)]
    quota, cpus = -1, frozenset(range(CPUS))
    changes, missed, work = 0, 0.0, 0.0
    for n in range(SECONDS):
        others = wanted(n)
        cap = float(len(cpus)) if mode == "cpuset" else CPUS if quota < 0 else quota / PERIOD_US
        missed += max(0.0, min(cap, others + cap - CPUS))
        used = min(cap, max(0.0, CPUS - others))
        work += used
        uses = (Use(round(others * 1000)), Use(round(used * 1000), best_effort=True))
        allowed = allowed_milli(Suppression(CPUS * 1000, round((others + used) * 1000), THRESHOLD, uses))
        if mode == "cpuset":
            following = suppressed_cpus(allowed, places, Pinned(), cpus) or cpus
            changes, cpus = changes + (following != cpus), following
        else:
            stepped = stepped_quota(allowed, quota, CPUS)
            changes, quota = changes + (stepped != quota), stepped
    return Score(changes, missed, work)


def seconds_of(wanted: Demand, **said: object) -> list[Second]:
    return world_of(wanted, **said).run(SECONDS)


def world_of(wanted: Demand, **said: object) -> World:
    web, job = build.workload("web"), build.workload("job")
    besteffort = CpuSection(weight=2, idle=True, suppressible=True)
    snap = build.snapshot(
        build.entitlement(web, tier="sensitive"),
        build.entitlement(job, tier="besteffort", cpu=besteffort),
        workloads=[web, job],
        on=build.node(CPUS, topology=build.topology(CPUS // 2)),
    )
    spoken = build.strategy("pool", {"suppress": said}).spec.suppress
    controllers = [CpuSuppress(CpuSuppress.Config())]
    return World(snap, controllers, Strategy(suppress=spoken), web=wanted, job=lambda _: CPUS)


def ours(mode: str, wanted: Demand) -> Score:
    seconds = seconds_of(wanted, mode=mode, thresholdPercent=THRESHOLD)
    missed, work = math.fsum(s.missed for s in seconds), math.fsum(s.used[JOB] for s in seconds)
    return Score(sum(s.writes for s in seconds), missed, work)


@pytest.mark.parametrize("mode", ["quota", "cpuset"])
@pytest.mark.parametrize("load", [step, noisy, diurnal])
def test_a_third_of_the_changes_no_more_starving_and_as_much_work(mode: str, load: Demand) -> None:
    here, there = ours(mode, load), theirs(mode, load)
    assert here.changes * 3 <= there.changes, (here, there)
    assert here.missed <= there.missed + 1e-6, (here, there)
    assert here.work >= 0.95 * there.work, (here, there)


@pytest.mark.parametrize("load", [step, noisy, diurnal])
def test_a_buffer_stays_idle_but_for_what_the_others_take_of_it_beyond_their_last_peak(load: Demand) -> None:
    seconds = seconds_of(load, mode="buffer", bufferCpus="4")
    for n in range(1, SECONDS):
        free = CPUS - math.fsum(seconds[n].used.values())
        burst = load(n) - max(load(k) for k in range(max(0, n - 10), n))
        assert free >= 4 - max(0.0, burst) - 1e-9, n
    assert math.fsum(s.used[JOB] for s in seconds) > 0.8 * (CPUS - 4 - 13) * SECONDS, "and nearly all else is lent"


@pytest.mark.parametrize("mode", ["quota", "cpuset", "buffer"])
def test_a_constant_load_is_answered_once_and_a_restart_changes_nothing(mode: str) -> None:
    world = world_of(lambda _: 12.3, mode=mode, thresholdPercent=THRESHOLD, bufferCpus="4")
    assert sum(s.writes for s in world.run(120)) == 1
    world.controllers = [CpuSuppress(CpuSuppress.Config())]
    world.series = {}
    assert sum(world.second(n).writes for n in range(120, 180)) == 0
