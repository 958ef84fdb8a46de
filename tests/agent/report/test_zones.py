"""What the agent reports of each memory node."""

from __future__ import annotations

import pytest

from j10ce.agent.cache import Histories
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring.ring import Report
from j10ce.daemon.clock import Instant
from j10ce.model.knob import NODE, Setting
from j10ce.model.machine.topology import Topology
from j10ce.model.plan import Outcome, Plan
from j10ce.model.quantity import Quantity
from j10ce.model.resource import NOTHING
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.testing.build import WALL, entitlement, node, snapshot, topology, workload

GiB = 1 << 30
WEB, CRUNCH = workload("web", cpu="2", memory="1Gi"), workload("crunch", cpu="3")
TWO = Topology(topology(8, 1, per_socket=4).sites, {0: 4 * GiB, 1: 6 * GiB})


def report(cpus: frozenset[int], tier: str = "sensitive", on: Topology = TWO) -> Report:
    """Web runs on these CPUs, and uses half a CPU and 2 GiB; best effort uses the rest."""
    entitled = (entitlement(WEB, tier=tier, floor_cpu="1"), entitlement(CRUNCH, tier="besteffort"))
    used = {"cpu.usage": {NODE: 5.0, WEB.target: 0.5}, "memory.working_set": {NODE: 6.0 * GiB, WEB.target: 2.0 * GiB}}
    readings = {(target, metric): n for metric, uses in used.items() for target, n in uses.items()}
    settings = {Setting(WEB.target, "cpuset.cpus"): cpus, Setting(CRUNCH.target, "cpuset.cpus"): frozenset({0})}
    on_it = node(cpus=8, topology=on)
    snap = snapshot(*entitled, workloads=[WEB, CRUNCH], on=on_it, readings=readings, values=settings)
    plan = Plan((), {})
    return Report(
        Instant(1000.0, WALL), "tick", snap, plan, Outcome.planned(plan), Resolution({}, Ledger(NOTHING)), {}, (), {},
        (), True, 0.0,
    )  # fmt: skip


def zones(made: Report) -> dict[str, dict[str, dict[str, Quantity]]]:
    usage = Usage(Histories(), lambda _: None)
    usage.observe(made)
    return usage.zones(made)


def amounts(**quantities: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in quantities.items()}


def test_who_runs_on_cpus_of_one_memory_node_is_bound_to_it() -> None:
    """Best effort is bound, too, and takes nothing from itself."""
    made = zones(report(frozenset({5, 6})))
    assert made["0"]["cpu"] == amounts(capacity="4", usage="0", request="0", larger="0")
    assert made["1"]["cpu"] == amounts(capacity="4", usage="500m", request="2", larger="2")
    assert made["1"]["memory"] == amounts(capacity="6Gi", usage="2Gi", request="1Gi", larger="2Gi")


@pytest.mark.parametrize("cpus", [frozenset(range(8)), frozenset({3, 4})], ids=["everywhere", "one of each"])
def test_who_runs_on_cpus_of_all_is_bound_to_none(cpus: frozenset[int]) -> None:
    assert {str(q["usage"]) for zone in zones(report(cpus)).values() for q in zone.values()} == {"0"}


def test_cpus_of_the_exclusive_count_used_or_not() -> None:
    assert str(zones(report(frozenset({5, 6}), "exclusive"))["1"]["cpu"]["usage"]) == "2"


def test_a_machine_with_one_memory_node_reports_none() -> None:
    assert zones(report(frozenset({1}), on=topology(8, 1))) == {}


def test_memory_that_the_kernel_does_not_tell_is_left_out() -> None:
    hidden = Topology(TWO.sites)
    assert {tuple(zone) for zone in zones(report(frozenset({5}), on=hidden)).values()} == {("cpu",)}
