"""QosAware: pods by their SLOs."""

from __future__ import annotations

import math
from typing import Final

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.identity import SYSTEM
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Candidate, Key, Preemptor
from j10ce.scheduler.plugins.classic.rules import sort_key
from j10ce.scheduler.plugins.classic.victims import Victims
from j10ce.scheduler.plugins.qos.admission import Admission
from j10ce.scheduler.plugins.qos.following import QosFollower
from j10ce.scheduler.plugins.qos.lazy import Lazy
from j10ce.scheduler.plugins.qos.settings import QosSettings
from j10ce.scheduler.plugins.queueing.preemption import DefaultPreemption

AGAIN_S: Final = 1.0
ADMIT_AGAIN_S: Final = 10.0
DEFAULTS: Final = QosSettings()


class QosAware(QosFollower):
    moves = True

    def __init__(
        self,
        settings: QosSettings = DEFAULTS,
        accounts: Accounts | None = None,
    ) -> None:
        if accounts is None:
            accounts = Accounts(settings.mode, settings.slo, settings.acceptable_overhead)
        super().__init__(accounts)
        self.settings = settings
        self._lazy = Lazy(self.accounts, settings)
        self._victims = Victims(self.accounts, settings.safety_margin_s, settings.minimum_running_s)
        self._by_priority = DefaultPreemption(stays=is_systems)
        self._admission = None if settings.admission == "off" else Admission(accounts, settings)

    def read(self, book: Book, /) -> None:
        if self._admission is not None:
            self._admission.read(book)

    def pod_gone(self, pod: PodFacts, now: float, /) -> None:
        super().pod_gone(pod, now)
        self._lazy.gone(pod.uid)

    def pre_enqueue(self, pod: PodFacts, now: float, /) -> str:
        return "" if self._admission is None else self._admission.refused(pod, now)

    def queue_key(self, pod: PodFacts, now: float, /) -> Key:
        if self.settings.mode == "classic":
            measure = self.accounts.measure(pod.uid, now)
            if measure is None:
                return sort_key(-math.inf, self.settings.slo, self.settings.safety_margin_s)
            return sort_key(measure.metric, measure.slo, self.settings.safety_margin_s)
        can_wait, it = self._lazy.laxity(pod, now), self.accounts.of(pod.uid)
        if can_wait is None or it is None:
            return sort_key(-math.inf, self.settings.slo, self.settings.margin_s)
        return sort_key(can_wait, it.identity.slo, self.settings.margin_s)

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        if not pod.preempts:
            return "Its preemptionPolicy is Never."
        if pod.namespace == SYSTEM:  # it has no SLO, and others cannot do without it
            return self._by_priority.post_filter(pod, rows, cycle, now)
        chooser = self._victims if self.settings.mode == "classic" else self._lazy
        return chooser.choose(pod, rows, cycle, now)

    def again_at(self, pod: PodFacts, now: float, /) -> float:
        if self._admission is not None and not self._admission.admitted(pod):
            return now + ADMIT_AGAIN_S
        needed = now if self.settings.mode == "classic" else self._lazy.needed_at(pod, now)
        return needed if needed <= now else max(needed, now + AGAIN_S)  # else as soon as it is backed off


def is_systems(pod: PodFacts) -> bool:
    return pod.namespace == SYSTEM or pod.critical
