"""A pod whose annotations make no sense hears what is wrong with them, once, by the replica that leads."""

from __future__ import annotations

from j10ce.kube.events import Subject
from j10ce.model.stored import Happening
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.process.cluster.faults import Faults


class Heard:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def __call__(self, about: Subject, happening: Happening) -> None:
        self.events.append((about.name, happening.reason, happening.message))


def pod(slo: str) -> PodFacts:
    return PodFacts("u-1", "shop", "web", annotations={"slo": slo})


def seen(faults: Faults, accounts: Accounts, of: PodFacts) -> None:
    accounts.seen(of, 1.0)
    faults.seen(of)


def test_what_is_wrong_is_told_once_for_each_text() -> None:
    accounts, heard = Accounts(), Heard()
    faults = Faults(accounts, heard, lambda: True)
    for slo in ("abc", "abc", "7"):
        seen(faults, accounts, pod(slo))
    assert [(name, reason) for name, reason, _ in heard.events] == [("web", "InvalidAnnotation")] * 2
    assert "slo = 'abc'" in heard.events[0][2].replace('"', "'")
    assert "0.80 is taken" in heard.events[1][2]


def test_a_replica_that_follows_says_nothing() -> None:
    accounts, heard, leads = Accounts(), Heard(), [False]
    faults = Faults(accounts, heard, lambda: leads[0])
    seen(faults, accounts, pod("nan"))
    assert heard.events == []
    leads[0] = True
    seen(faults, accounts, pod("nan"))
    assert len(heard.events) == 1


def test_a_pod_without_faults_hears_nothing() -> None:
    accounts, heard = Accounts(), Heard()
    seen(Faults(accounts, heard, lambda: True), accounts, pod("0.95"))
    assert heard.events == []
