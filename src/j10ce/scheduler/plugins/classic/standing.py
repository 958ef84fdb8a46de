"""How a pod stands beside others: its measure, and what it is compared by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.identity import SYSTEM
from j10ce.scheduler.accounts.measure import Measure
from j10ce.scheduler.book.facts import PodFacts

Spared: TypeAlias = Callable[[PodFacts], bool]  # whether a pod is never a victim, whatever its SLO


class Rival(NamedTuple):
    """A pod that has a node, or wants one, with its account."""

    pod: PodFacts
    key: str
    approach: str
    measure: Measure


def rival(accounts: Accounts, pod: PodFacts, now: float) -> Rival | None:
    """None: nobody follows it."""
    it, account = accounts.of(pod.uid), accounts.account(pod.uid)
    if it is None or account is None or not it.current:
        return None
    return Rival(pod, account.key, it.identity.approach, account.measure(it, now, accounts.default_acceptable))


def rivals(accounts: Accounts, pods: Iterator[PodFacts], spared: Spared, now: float) -> Iterator[Rival]:
    """Those that may have to go for others: never one of the system, nor one that is going already."""
    for pod in pods:
        if pod.namespace == SYSTEM or pod.critical or pod.deleted is not None or spared(pod):
            continue
        if (each := rival(accounts, pod, now)) is not None:
            yield each
