"""Pods are followed from when they are seen until they are gone, whoever schedules them."""

from __future__ import annotations

import pytest

from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings

NOW = 1_790_000_000.0


def pod(**more: object) -> PodFacts:
    of = PodFacts("u", "shop", "web-0", owner=OwnerFacts("StatefulSet", "shop", "web"))
    return of._replace(**more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(pod(scheduler="other"), id="pending, of another scheduler"),
        pytest.param(pod(scheduler="other", node="n1"), id="bound by another scheduler"),
        pytest.param(pod(scheduler="s"), id="pending"),
        pytest.param(pod(scheduler="s", deleted=NOW), id="pending and to be deleted"),
    ],
)
def test_a_pod_that_is_gone_is_followed_no_more(of: PodFacts) -> None:
    plugin = QosAware(QosSettings())
    scheduler = Scheduler([profile("s", [plugin])])
    scheduler.put_pod(of._replace(deleted=None), NOW)
    assert plugin.accounts.of("u")
    scheduler.put_pod(of, NOW + 1)
    scheduler.remove_pod("u", NOW + 2)
    assert not plugin.accounts.of("u")
    scheduler.remove_fact(OwnerFacts("StatefulSet", "shop", "web"), NOW + 3)
    assert not plugin.accounts.by_key


def test_a_binding_that_fails_leaves_no_trace() -> None:
    plugin = QosAware(QosSettings(mode="classic"))
    plugin.pod_seen(pod(), NOW)
    plugin.reserve(pod(), "n1", NOW)
    plugin.pre_bind(pod(), "n1", NOW + 5)
    plugin.unreserve(pod(), "n1", NOW + 6)
    plugin.pre_bind(pod(), "n1", NOW + 10)
    plugin.post_bind(pod(), "n1", NOW + 12)
    measure = plugin.accounts.measure("u", NOW + 20)
    assert measure is not None
    assert (measure.sums.waiting, measure.sums.binding, measure.sums.effective) == (10.0, 2.0, 8.0)


def test_a_pod_of_lazy_mode_runs_from_the_start_of_its_containers() -> None:
    plugin = QosAware(QosSettings())
    plugin.pod_seen(pod(), NOW)
    plugin.pre_bind(pod(), "n1", NOW + 5)
    plugin.post_bind(pod(), "n1", NOW + 6)
    plugin.pod_seen(pod(node="n1", started=NOW + 9, phase="Running"), NOW + 10)
    measure = plugin.accounts.measure("u", NOW + 20)
    assert measure is not None
    assert (measure.sums.waiting, measure.sums.binding, measure.sums.effective) == (5.0, 4.0, 11.0)
