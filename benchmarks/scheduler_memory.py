"""What a scheduler of 5,000 nodes and 100,000 pods takes: resident memory of this process, 200 shapes looked at."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

from benchmarks.facts import machine_facts
from benchmarks.scheduler import alike, choosy, defaults, mixed, node, shape
from j10ce.scheduler.cycle.decisions import Bind
from j10ce.scheduler.cycle.scheduler import Scheduler

NODES, PODS = 5_000, 100_000
BUDGET_MIB: Final = 400
MIXED: Final = 10_000  # of them; the others are equal, as most pods of a large cluster are
MIB: Final = 1 << 20


def main() -> int:
    machine_facts()
    began = resident()
    scheduler = Scheduler([defaults()])
    for n in range(NODES):
        scheduler.put_node(node(n), 0.0)
    with_nodes = resident()
    pods = mixed(MIXED)
    for n, pod in enumerate(pods):
        scheduler.put_pod(pod._replace(uid=f"mixed-{n}", name=f"mixed-{n}"), 0.0)
    bound = settle(scheduler)
    for start in range(0, PODS - MIXED, 10_000):
        for n, pod in enumerate(alike(10_000, choosy(start // 10_000 * 3) if start else shape(7))):
            unique = f"pod-{start + n}"
            scheduler.put_pod(pod._replace(uid=unique, name=unique, labels={"app": f"app-{n % 500}"}), 1.0)
        bound += settle(scheduler)
    now = resident()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"interpreter and imports {began / MIB:.0f} MiB, {NODES:,} nodes {(with_nodes - began) / MIB:.0f} MiB,")
    print(
        f"{bound:,} pods {(now - with_nodes) / MIB:.0f} MiB, together {now / MIB:.0f} MiB, at most {peak / MIB:.0f} MiB"
    )
    missed = peak > BUDGET_MIB * MIB or bound != PODS
    print(f"at most {BUDGET_MIB} MiB: {'MISSED' if missed else 'met'}")
    return missed


def settle(scheduler: Scheduler) -> int:
    """Binds all that is pending, as an API server would say."""
    bound = 0
    for decision in scheduler.step(2.0):
        assert isinstance(decision, Bind), decision
        scheduler.bound(decision.pod.uid, 2.0)
        scheduler.put_pod(decision.pod.at(decision.node)._replace(phase="Running"), 2.0)
        bound += 1
    return bound


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    raise SystemExit(main())
