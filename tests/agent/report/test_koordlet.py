"""What koordlet's dashboards ask for, by its names."""

from __future__ import annotations

import math
import re
from pathlib import Path

from j10ce.agent.report.metrics import Metrics
from j10ce.agent.ring.ring import Report
from j10ce.daemon.clock import Instant
from j10ce.model.knob import NODE, Deed, Setting
from j10ce.model.plan import Action, Applied, Bound, Outcome, Plan, Proposal, Rank, Refused, Verdict
from j10ce.model.resource import NOTHING
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.testing.build import WALL, entitlement, snapshot, workload

PAGE = (Path(__file__).parents[3] / "docs/koordinator.md").read_text()
WEB, BATCH = workload("web"), workload("batch", namespace="jobs")
READINGS = {
    (NODE, "cpu.usage"): 3.0,
    (NODE, "memory.working_set"): 1000.0,
    (WEB.target, "cpu.usage"): 1.0,
    (BATCH.target, "cpu.usage"): 0.5,
    (WEB.target, "cpu.pressure"): 0.25,
}


def verdict(quota: float) -> Verdict:
    setting = Setting(BATCH.target, "cpu.max")
    by = Proposal(setting, Bound.AT_MOST, quota, "cpu-suppress", Rank.POLICY, "why")
    return Verdict(setting, quota, None, by=by)


def report(quota: float = math.inf, *deeds: tuple[Action, Applied | Refused]) -> Report:
    entitled = [entitlement(WEB, tier="sensitive"), entitlement(BATCH, tier="besteffort")]
    decided = verdict(quota)
    return Report(
        Instant(1.0, WALL), "tick", snapshot(*entitled, workloads=[WEB, BATCH], readings=READINGS),
        Plan(verdicts={decided.setting: decided}), Outcome(deeds=deeds),
        Resolution({e.target: e for e in entitled}, Ledger(NOTHING)), {}, (), {}, (), armed=True, cpu_s=0.0,
    )  # fmt: skip


def lines(of: Report, *, koordlet: bool = True) -> list[str]:
    metrics = Metrics(koordlet=koordlet)
    metrics.observe(of)
    return [line for line in metrics.render(of).decode().splitlines() if line.startswith("koordlet_")]


def test_they_are_there_only_where_they_are_asked_for() -> None:
    assert lines(report(), koordlet=False) == []


def test_use_of_the_node_and_of_those_who_share_it() -> None:
    shown = lines(report())
    assert 'koordlet_node_used_cpu_cores{node="n1"} 3.0' in shown
    assert 'koordlet_node_metric_node_usage{node="n1",resource="memory",unit="byte"} 1000.0' in shown
    assert 'koordlet_node_metric_system_usage{node="n1",resource="cpu",unit="core"} 1.5' in shown
    assert 'koordlet_be_suppress_ls_used_cpu_cores{node="n1"} 1.0' in shown
    assert 'koordlet_be_suppress_be_used_cpu_cores{node="n1"} 0.5' in shown


def test_pressure_is_a_percentage() -> None:
    (ten, *_) = [line for line in lines(report()) if line.startswith("koordlet_pod_psi{")]
    assert ten.endswith("} 25.0")
    for label in ('pod_name="web"', 'pod_namespace="default"', 'psi_resource_type="cpu"', 'psi_precision="avg10"'):
        assert label in ten


def test_a_cap_on_best_effort_is_shown_and_no_cap_is_not() -> None:
    assert 'koordlet_be_suppress_cpu_cores{node="n1",type="cfsQuota"} 1.5' in lines(report(150_000.0))
    assert not [line for line in lines(report()) if line.startswith("koordlet_be_suppress_cpu_cores{")]


def test_evictions_count_once_they_are_made() -> None:
    evict = Action(Deed.EVICT, BATCH.target, "eviction", "why")
    assert 'koordlet_pod_eviction{node="n1",reason="eviction"} 1.0' in lines(report(math.inf, (evict, Applied(1.0))))
    assert not [line for line in lines(report(math.inf, (evict, Refused("no")))) if "pod_eviction{" in line]


def test_the_page_has_every_metric() -> None:
    evict = Action(Deed.EVICT, BATCH.target, "eviction", "why")
    shown = {line.partition("{")[0] for line in lines(report(150_000.0, (evict, Applied(1.0))))}
    section = PAGE.partition("## Metrics by its names")[2].partition("\n## ")[0]
    assert shown == set(re.findall(r"`(koordlet_\w+)`", section))
