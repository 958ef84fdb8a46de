"""How pods are spread that do not say how: those of the same services and of the same owner, over zones and nodes."""

from __future__ import annotations

from typing import Final

from j10ce.scheduler.book.around import Around, ServiceFacts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, SpreadConstraint

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
OF_THE_SYSTEM: Final = (
    SpreadConstraint(3, HOSTNAME, "ScheduleAnyway", None),
    SpreadConstraint(5, ZONE, "ScheduleAnyway", None),
)
WITHOUT_REPLICAS: Final = ("Job", "CronJob", "DaemonSet")  # owners whose pods are not spread
NOBODY: Final = LabelTest()


def alike(pod: PodFacts, around: Around) -> LabelTest:
    """Whom services and owner count as the same as the pod; empty: nobody."""
    tests = [
        service.selector
        for service in around.within(ServiceFacts, pod.namespace)
        if service.selector is not None and chosen(service.selector, pod.labels)
    ]
    owner = pod.owner
    if owner is not None and owner.selector is not None and owner.kind not in WITHOUT_REPLICAS:
        tests.append(owner.selector)
    labels = tuple(sorted({pair for test in tests for pair in test.labels}))
    return LabelTest(labels, tuple(e for test in tests for e in test.expressions))
