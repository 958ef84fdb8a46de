"""Who suffers from whom: how often the right one of ten is named, how soon, and what looking for it costs.

Simulated mixes with noise, by seed (tests/control/interference/mixes.py); the controller is the real one.
"""

from __future__ import annotations

import statistics
import sys
import time

from benchmarks.facts import machine_facts
from j10ce.control.interference.interference import Interference
from tests.control.interference.mixes import NAMED_S, Machine, Mix, attacks, judged, quiet_ones

MIXES = 20
LEAST_NAMED = 18
TICKS = 200


def main() -> int:
    machine_facts()
    outcomes = [judged(mix, Interference(Interference.Config())) for mix in attacks(MIXES)]
    quiet = [judged(mix, Interference(Interference.Config())) for mix in quiet_ones(MIXES)]
    named = [o.after_s for o in outcomes if o.right and o.after_s <= NAMED_S]
    accused = [o for o in quiet if o.named]
    print(f"antagonist among 10 named first within {NAMED_S:g} s: {len(named)} of {MIXES} mixes")
    print(f"after {statistics.median(named):.0f} s in the median, {max(named):.0f} s at most")
    print(f"accused in quiet mixes: {len(accused)} of {MIXES}")
    print(f"CPU of a tick in which somebody suffers: {tick_ms():.2f} ms in the median")
    met = len(named) >= LEAST_NAMED and not accused
    print(f"at least {LEAST_NAMED} named, nobody accused: {'met' if met else 'MISSED'}")
    return not met


def tick_ms() -> float:
    machine, controller = Machine(Mix(0, "step")), Interference(Interference.Config())
    taken = []
    for t in range(machine.begins + TICKS):
        machine.second(t)
        snap = machine.snapshot(t)
        begun = time.thread_time()
        list(controller.propose(snap))
        taken.append((time.thread_time() - begun) * 1e3)
    return statistics.median(taken[machine.begins :])


if __name__ == "__main__":
    sys.exit(main())
