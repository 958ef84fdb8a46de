"""Lazy mode on a small cluster: SLOs are met with few preemptions, and each is explained."""

from __future__ import annotations

import pytest

from j10ce.scheduler.plugins.qos.prospects import Prospects
from j10ce.scheduler.plugins.qos.settings import QosSettings
from tests.scheduler.plugins.qos.cluster import START, Cluster

EQUAL = [0.9] * 44  # of 40 places: 39.6 are asked for
MIXED = [1.0] * 16 + [0.9] * 16 + [0.5] * 17  # 38.9 of 40


def ran(slos: list[float], seconds: float = 1500.0, nodes: int = 4, **of: object) -> Cluster:
    cluster = Cluster(QosSettings(**of), nodes=nodes)  # type: ignore[arg-type]
    cluster.arrive(list(slos))
    cluster.run(seconds)
    return cluster


def test_equal_pods_all_meet_their_slo_with_few_preemptions() -> None:
    cluster = ran(EQUAL)
    assert all(had >= slo - 0.002 for slo, had in cluster.availability(1500.0))
    assert len(cluster.evictions) <= 3 * len(EQUAL)


def test_of_several_classes_each_is_within_a_point_of_its_slo() -> None:
    cluster = ran(MIXED)
    assert all(had >= slo - 0.01 for slo, had in cluster.availability(1500.0))


def test_each_eviction_says_its_rule_and_its_numbers() -> None:
    whys = {evict.why for evict in ran(EQUAL, 700.0).evictions}
    assert whys
    assert all("can wait" in why and "SLO 0.9" in why and "preemptions left" in why for why in whys)


def test_a_pod_that_has_not_run_yet_is_no_victim() -> None:
    cluster = ran(EQUAL, 1000.0)
    assert all(evict.victim.started is not None for evict in cluster.evictions)


@pytest.mark.parametrize("slos", [EQUAL, MIXED], ids=["equal", "mixed"])
def test_what_was_seen_of_nodes_lately_decides_nothing_but_where_to_look(
    slos: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    quickly = ran(slos, 1000.0)
    monkeypatch.setattr(Prospects, "known", lambda *_: [])
    everywhere = ran(slos, 1000.0)
    assert [e.victim.uid for e in quickly.evictions] == [e.victim.uid for e in everywhere.evictions]
    assert quickly.evictions


def test_nobody_goes_when_the_budget_is_used_up() -> None:
    free, tight = ran(EQUAL, 1000.0), ran(EQUAL, 1000.0, budget=0.00001)
    assert len(free.evictions) > len(tight.evictions) <= 2


def test_pods_that_stand_on_units_are_no_victims() -> None:
    cluster = Cluster(QosSettings(), nodes=4, stands=lambda pod: bool(pod.owner) and pod.owner.name < "o3")
    cluster.arrive(list(EQUAL))
    cluster.run(1000.0)
    owners = [evict.victim.owner.name for evict in cluster.evictions if evict.victim.owner]
    assert owners
    assert min(owners) >= "o3"


def test_without_contention_nobody_goes() -> None:
    assert not ran([0.9] * 39).evictions


@pytest.mark.parametrize("rule", ["greedy", "predictive"])
def test_who_is_admitted_keeps_its_slo_where_all_together_would_not(rule: str) -> None:
    cluster = ran(MIXED, nodes=3, admission=rule)
    let_in = [(slo, had) for slo, had in cluster.availability(1500.0) if had > 0]
    kept_out = [each for each in cluster.scheduler.pending() if "is not admitted: cpu: it asks for" in each.why]
    assert kept_out
    if rule == "predictive":
        assert sum(had >= slo - 0.01 for slo, had in let_in) >= 0.91 * len(let_in)


def test_classic_mode_runs_pods_from_their_binding_and_moves_them_by_the_metric() -> None:
    cluster = ran([0.5] * 20, 900.0, nodes=1, mode="classic", safety_margin_s=30.0, minimum_running_s=60.0)
    assert cluster.evictions
    assert all(evict.why.startswith("classic: ") for evict in cluster.evictions)
    had = [share for _, share in cluster.availability(900.0)]
    assert min(had) > 0.4
    assert cluster.accounts.since == START
