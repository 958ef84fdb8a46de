"""A service that its limit throttles, on a real kernel: with a burst its periods are throttled no more."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.control.cpu.bursting.burst import CpuBurst
from j10ce.control.limits import Limits
from j10ce.model.knob import KNOBS, NODE, Setting
from j10ce.model.parts.strategy import BurstSection, Strategy
from j10ce.model.plan import ValueChange
from j10ce.model.workload import Handle
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from tests.enforce.workbench import Workbench, stat, until

PERIODS = 20
# It wants 35 ms of CPU in every 100 ms of the kernel's clock, and its limit is 20.
BURSTY = """
import time
while True:
    begun = time.thread_time()
    while time.thread_time() < begun + 0.035: pass
    time.sleep(0.065)
"""


def test_throttled_periods_are_gone_with_a_quota_that_may_rise(work: Workbench) -> None:
    at = work.make("service")
    for place in (Handle(work.top), at):  # only its limit holds it back, whatever runs beside it
        work.set(place, "cpu.weight", KNOBS["cpu.weight"].high)
    work.set(at, "cpu.max", 20_000.0)
    work.spawn(at, BURSTY)
    until(lambda: work.cpu_s(at) > 0.2)
    before = throttled(work, at)
    raised = decide(work, at, before)
    assert raised == 60_000, "three times its limit"
    until(lambda: throttled(work, at) <= 0.01)
    print(f"throttled periods: {before:.0%} at its limit, at most 1 % after")
    assert before >= 0.3


def throttled(work: Workbench, at: Handle) -> float:
    """The share of the next periods in which it runs."""
    counters = work.path(at, "cpu.stat")
    first = stat(counters)
    until(lambda: stat(counters)["nr_periods"] >= first["nr_periods"] + PERIODS)
    last = stat(counters)
    return (last["nr_throttled"] - first["nr_throttled"]) / (last["nr_periods"] - first["nr_periods"])


def decide(work: Workbench, at: Handle, share: float) -> float:
    """What the controllers make of that on a machine whose shared CPUs are idle, written to the kernel."""
    w = build.workload("service", cpu_limit="200m", handle=replace(at, made=False))
    quota = Setting(w.target, "cpu.max")
    snap = build.snapshot(
        build.entitlement(w, tier="sensitive"),
        workloads=[w],
        values={quota: 20_000.0},
        readings={(w.target, "cpu.throttled"): share, (w.target, "cpu.usage"): 0.2, (NODE, "cpu.usage"): 0.2},
    )
    snap = replace(snap, strategy=Strategy(burst=BurstSection(policy="quota")))
    wishes = [*Limits(Limits.Config()).propose(snap), *CpuBurst(CpuBurst.Config()).propose(snap)]
    plan = arbitrate(wishes, snap, (), lambda _, value: value)
    (change,) = [c for c in plan.changes if isinstance(c, ValueChange)]
    assert change.setting == quota
    work.set(at, "cpu.max", change.new)
    return float(change.new)  # type: ignore[arg-type]
