"""What is measured, whoever decides: clocks of all pods, kept by their events and by how bindings go."""

from __future__ import annotations

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts


class QosFollower:
    """Alone in a profile it measures, and decides nothing."""

    name = "QosAware"
    facts: tuple[type, ...] = (OwnerFacts,)

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts

    def pod_seen(self, pod: PodFacts, now: float, /) -> None:
        self.accounts.seen(pod, now)

    def pod_gone(self, pod: PodFacts, now: float, /) -> None:
        self.accounts.gone(pod.uid, now)

    def fact_seen(self, fact: OwnerFacts, now: float, /) -> None:
        self.accounts.owner_seen(fact, now)

    def fact_gone(self, fact: OwnerFacts, now: float, /) -> None:
        self.accounts.owner_gone(fact)

    def reserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        self.accounts.allocating(pod.uid, True)

    def unreserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        self.accounts.allocating(pod.uid, False)
        self.accounts.unbound(pod.uid)

    def pre_bind(self, pod: PodFacts, node: str, now: float, /) -> None:
        self.accounts.binding(pod.uid, now)

    def post_bind(self, pod: PodFacts, node: str, now: float, /) -> None:
        self.accounts.bound(pod.uid, now)
