"""What a decision of the scheduler costs: mixed pods and equal ones, 100 to 15,000 nodes, all default plugins.

Time is this process's CPU time, for whole steps: queue, filters, scores, the book and the binding that is decided. Of
200 shapes a third ask for labels of nodes, prefer some or bear taints; one pod in twenty is spread or keeps away from
its own kind. Equal pods are of one shape, labels and owner. Half of the pods of each case go first, unmeasured.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.facts import machine_facts
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, PodFacts
from j10ce.scheduler.book.shape import (
    Affinity,
    LabelTest,
    NodeExpression,
    NodeTerm,
    PodTerm,
    PreferredNodeTerm,
    Shape,
    SpreadConstraint,
    Toleration,
)
from j10ce.scheduler.cycle.decisions import Bind
from j10ce.scheduler.cycle.profile import Profile, profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.neighbours.inter_pod import InterPodAffinity
from j10ce.scheduler.plugins.neighbours.ports import NodePorts
from j10ce.scheduler.plugins.neighbours.spread import PodTopologySpread
from j10ce.scheduler.plugins.nodes.affinity import NodeAffinity
from j10ce.scheduler.plugins.nodes.images import ImageLocality
from j10ce.scheduler.plugins.nodes.named import NodeName
from j10ce.scheduler.plugins.nodes.taints import TaintToleration
from j10ce.scheduler.plugins.nodes.unschedulable import NodeUnschedulable
from j10ce.scheduler.plugins.nodes.volumes import VolumeBinding
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

SIZES: Final = (100, 1_000, 5_000, 15_000)
BAR_AT: Final = 5_000
MIXED_BAR, EQUAL_BAR = 8_000, 100_000
RUNS: Final = 3
SHAPES: Final = 200
NAME: Final = "default-scheduler"
WEIGHTS: Final = {"TaintToleration": 3.0, "NodeAffinity": 2.0, "PodTopologySpread": 2.0, "InterPodAffinity": 2.0}
GIB: Final = 1 << 30
WEB: Final = {"app": "web"}


def main() -> int:
    machine_facts()
    print(f"decisions per second of CPU time, assume included; medians of {RUNS}")
    print(f"{'nodes':>6} " + " ".join(f"{case:>14}" for case in cases(1)))
    bars = {}
    for size in SIZES:
        rates = {case: rate(size, pods) for case, pods in cases(size).items()}
        print(f"{size:6} " + " ".join(f"{r:14,.0f}" for r in rates.values()))
        if size == BAR_AT:
            bars = rates
    missed = bars["mixed"] < MIXED_BAR or bars["equal"] < EQUAL_BAR
    print(f"at {BAR_AT} nodes ≥ {MIXED_BAR:,} mixed, ≥ {EQUAL_BAR:,} equal: {'MISSED' if missed else 'met'}")
    return missed


def cases(size: int) -> dict[str, list[PodFacts]]:
    count = min(8_000, 20 * size)
    return {
        "mixed": mixed(count),
        "equal": alike(min(5 * count, 20 * size), shape(7)),
        "node affinity": alike(count // 4, choosy(7)),
        "spread": alike(count // 4, spread(shape(7))),
        "anti-affinity": alike(min(size * 9 // 10, count // 4), apart(shape(7))),
    }


def rate(size: int, pods: Sequence[PodFacts]) -> float:
    return statistics.median(once(size, pods) for _ in range(RUNS))


def once(size: int, pods: Sequence[PodFacts]) -> float:
    scheduler = Scheduler([defaults()])
    for n in range(size):
        scheduler.put_node(node(n), 0.0)
    half = len(pods) // 2
    for pod in pods[:half]:
        scheduler.put_pod(pod, 0.0)
    scheduler.step(0.0)
    for pod in pods[half:]:
        scheduler.put_pod(pod, 1.0)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    decisions = scheduler.step(1.0)
    took = time.process_time() - began
    gc.unfreeze()
    bound = sum(isinstance(d, Bind) for d in decisions)
    assert bound == len(pods) - half, f"{bound} of {len(pods) - half} found a node"
    return bound / took


def defaults() -> Profile:
    plugins = [
        NodeUnschedulable(), NodeName(), TaintToleration(), NodeAffinity(), NodePorts(), NodeResourcesFit(),
        VolumeBinding(), PodTopologySpread(), InterPodAffinity(), BalancedAllocation(), ImageLocality(),
    ]  # fmt: skip
    return profile(NAME, plugins, WEIGHTS)


def node(n: int) -> NodeFacts:
    labels = {"kubernetes.io/hostname": f"node-{n}", "zone": f"zone-{n % 5}", "disk": "ssd" if n % 3 else "hdd"}
    taints = (NodeTaint("dedicated", "infra", "NoSchedule"),) if n % 20 == 0 else ()
    if n % 10 == 1:
        taints = (NodeTaint("old", "", "PreferNoSchedule"),)
    return NodeFacts(f"node-{n}", labels, {"cpu": 32_000, "memory": 256 * GIB, "pods": 250}, taints)


def shape(n: int) -> Shape:
    """Of 200."""
    chance = random.Random(n)
    cpu, memory = chance.randrange(50, 1000, 10), chance.randrange(64, 4096, 16) << 20
    return Shape((("cpu", cpu), ("memory", memory)), (cpu, memory))


def choosy(n: int) -> Shape:
    match n // 3 % 3:
        case 0:
            return shape(n)._replace(node_selector=(("disk", "ssd"),))
        case 1:
            zone = NodeTerm((NodeExpression("zone", "In", ("zone-1", "zone-2")),))
            return shape(n)._replace(affinity=Affinity(preferred_nodes=(PreferredNodeTerm(10, zone),)))
    return shape(n)._replace(tolerations=(Toleration("dedicated", "Exists"), Toleration("old", "Exists")))


def spread(of: Shape) -> Shape:
    return of._replace(spread=(SpreadConstraint(5, "zone", "DoNotSchedule", LabelTest(tuple(WEB.items()))),))


def apart(of: Shape, app: str = "web") -> Shape:
    term = PodTerm(LabelTest((("app", app),)), "kubernetes.io/hostname")
    return of._replace(affinity=Affinity(anti_pods=(term,)))


def mixed(count: int) -> list[PodFacts]:
    chance = random.Random(count)
    shapes = [choosy(n) if n % 3 == 0 else shape(n) for n in range(SHAPES)]
    return [one(n, chance.choice(shapes)) for n in range(count)]


def one(n: int, plain: Shape) -> PodFacts:
    """One in twenty is spread, or keeps away from its own kind."""
    if n % 20:
        return pod(n, plain, {"app": f"app-{n % 50}"})
    if n % 40:
        return pod(n, spread(plain), WEB)
    return pod(n, apart(plain, f"lone-{n % 7}"), {"app": f"lone-{n % 7}"})


def alike(count: int, of: Shape) -> list[PodFacts]:
    return [pod(n, of, WEB) for n in range(count)]


def pod(n: int, of: Shape, labels: dict[str, str]) -> PodFacts:
    return PodFacts(f"uid-{n}", "default", f"pod-{n}", of, labels, scheduler=NAME, created=float(n))


if __name__ == "__main__":
    raise SystemExit(main())
