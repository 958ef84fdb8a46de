"""Keeps out owners that there is no room for, so that those which are in meet their SLOs.

An owner asks for SLO · pods · requests of each resource, and is let in or not as a whole; who is in stays in.

    greedy       asked + admitted of its class ≤ capacity − admitted of more important classes
    predictive   asked + all admitted + what starts take ≤ the capacity to count on: the least of the last day,
                 but for one part in twenty
                 what starts take: (pods that have to share + slots) · overhead / length of a period
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.accounts.account import OwnerAccount
from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.identity import SYSTEM
from j10ce.scheduler.accounts.measure import FIRST_OVERHEAD_S
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.plugins.qos.settings import QosSettings

EVERY_S: Final = 60.0
MOST_SAMPLES: Final = 1440  # a day
QUANTILE: Final = 0.05


class Asked(NamedTuple):
    """By an owner: pods times requests, by resource; weighed by the SLO when it is counted."""

    slo: float
    pods: int
    requests: tuple[tuple[str, int], ...]


class Admission:
    def __init__(self, accounts: Accounts, settings: QosSettings) -> None:
        self._accounts, self._settings = accounts, settings
        self._book = Book()
        self._in: dict[str, Asked] = {}
        self._samples = deque[dict[str, int]](maxlen=MOST_SAMPLES)
        self._sampled_at = float("-inf")

    def read(self, book: Book) -> None:
        """Capacity is what its nodes have."""
        self._book = book

    def admitted(self, pod: PodFacts) -> bool:
        account = self._accounts.account(pod.uid)
        return account is None or account.key in self._in

    def refused(self, pod: PodFacts, now: float) -> str:
        """Why it is not let in, with numbers; empty: it is."""
        account = self._accounts.account(pod.uid)
        if account is None or pod.namespace == SYSTEM or pod.node:
            return ""
        if account.key in self._in:
            return ""
        self._forget()
        self._sample(now)
        asked = self._asked(pod, account)
        if why := self._short(asked):
            return f"{account.key} is not admitted: {why}"
        self._in[account.key] = asked
        return ""

    # -- inside

    def _asked(self, pod: PodFacts, account: OwnerAccount) -> Asked:
        pods = max(account.identity.slots, 1)
        requests = (("pods", 1), *((name, amount) for name, amount in pod.shape.requests if name != "pods"))
        return Asked(account.identity.slo, pods, requests)

    def _short(self, asked: Asked) -> str:
        greedy = self._settings.admission == "greedy"
        for name, amount in asked.requests:
            there = [each for each in self._in.values() if not greedy or each.slo >= asked.slo]
            admitted = sum(each.slo * each.pods * dict(each.requests).get(name, 0) for each in there)
            capacity = self._now(name) if greedy else self._least(name)
            lost = 0.0 if greedy else self._lost([*there, asked], amount, capacity)
            wanted = asked.slo * asked.pods * amount
            if admitted + wanted + lost > capacity * (1 + 1e-9):
                return (
                    f"{name}: it asks for {wanted:.0f} (SLO {asked.slo:g} · {asked.pods} pods), "
                    f"{admitted:.0f} of {capacity:.0f} are promised"
                    + (f", and starts take {lost:.0f}" if lost else "")
                    + f" ({self._settings.admission})"
                )
        return ""

    def _lost(self, shared: list[Asked], amount: int, capacity: float) -> float:
        """Each pod that shares starts once per period, and so does who comes after it."""
        if not amount:
            return 0.0
        sharing = sum(each.pods for each in shared if 0 < each.slo < 1)
        slots = capacity / amount
        return (sharing + slots) * FIRST_OVERHEAD_S / self._settings.periods_s[-1] * amount

    def _forget(self) -> None:
        """Who is gone asks for nothing any more."""
        for key in [key for key in self._in if key not in self._accounts.by_key]:
            del self._in[key]
        for key in [key for key, _ in self._in.items() if self._over(self._accounts.by_key[key])]:
            del self._in[key]

    @staticmethod
    def _over(account: OwnerAccount) -> bool:
        return not account.live and (not account.owners or 0 < account.identity.completions <= account.succeeded)

    def _now(self, name: str) -> float:
        column = self._book.columns.number(name)
        if column >= self._book.allocatable.shape[1]:
            return 0.0
        return float(self._book.allocatable[:, column].sum())

    def _sample(self, now: float) -> None:
        if now - self._sampled_at >= EVERY_S:
            self._sampled_at = now
            self._samples.append({name: int(self._now(name)) for name in tuple(self._book.columns.names)})

    def _least(self, name: str) -> float:
        past = np.array([sample.get(name, 0) for sample in self._samples], np.float64)
        return min(float(np.quantile(past, QUANTILE)), self._now(name)) if len(past) else self._now(name)
