"""Pods of kube-system have no SLO: they go for nobody, and others go for them by priority, as in Kubernetes."""

from __future__ import annotations

from typing import Final

import pytest

from j10ce.scheduler.accounts.accounts import Accounts, Mode
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.decisions import Decision, Evict
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.qos.aware import QosAware
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

START: Final = 1_790_000_000.0
CRITICAL: Final = 2_000_000_000


def full(mode: Mode) -> Scheduler:
    """A node with one pod of each namespace, each on a half."""
    accounts = Accounts(mode)
    plugins = [QosAware(QosSettings(mode), accounts), NodeResourcesFit()]
    scheduler = Scheduler([profile("s", plugins)])
    scheduler.put_node(NodeFacts("n", {}, {"cpu": 2_000, "pods": 110}), START)
    for namespace in ("kube-system", "shop"):
        scheduler.put_pod(pod("there", namespace)._replace(node="n", phase="Running", started=START), START)
    return scheduler


def pod(name: str, namespace: str, priority: int = 0) -> PodFacts:
    shape = Shape((("cpu", 1_000),), (1_000, 0))
    return PodFacts(f"{namespace}-{name}", namespace, name, shape, scheduler="s", priority=priority, created=START)


def asked(scheduler: Scheduler, wants: PodFacts) -> list[Decision]:
    scheduler.put_pod(wants, START + 1.0)
    return scheduler.step(START + 1.0)


@pytest.mark.parametrize("mode", ["lazy", "classic"])
def test_a_critical_pod_of_the_system_has_room_made_by_priority(mode: Mode) -> None:
    decisions = asked(full(mode), pod("dns", "kube-system", CRITICAL))
    assert [d.victim.key for d in decisions if isinstance(d, Evict)] == ["shop/there"]


@pytest.mark.parametrize("mode", ["lazy", "classic"])
def test_a_pod_of_the_system_without_a_priority_waits(mode: Mode) -> None:
    assert not any(isinstance(d, Evict) for d in asked(full(mode), pod("tool", "kube-system")))


@pytest.mark.parametrize("mode", ["lazy", "classic"])
def test_no_pod_of_the_system_goes_for_one_of_it(mode: Mode) -> None:
    scheduler = full(mode)
    scheduler.remove_pod("shop-there", START)
    scheduler.put_pod(pod("other", "kube-system")._replace(node="n", phase="Running", started=START), START)
    assert not any(isinstance(d, Evict) for d in asked(scheduler, pod("dns", "kube-system", CRITICAL)))
